# SPDX-License-Identifier: BSL-1.0
"""railpass demo: both times, their ratio with its interval, the chosen algorithm and a verdict."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from program import ProgramTest, main  # noqa: E402

TIME = r"[\d.]+ (?:s|ms|us)"


class Demo(ProgramTest):
    def test_what_is_shown_has_its_form_and_nothing_is_kept(self):
        environment = {"RAILPASS_KNOWLEDGE": self.path("knowledge"), "TMPDIR": self.folder}
        done = self.run_railpass("demo", "-n", 2, "--repetitions", 1, "--steps", 500, timeout=800,
                                 environment=environment)
        self.assertEqual(os.listdir(self.folder), [])
        number = r"\d+\.\d+"
        for line in (rf"without +{TIME} .*", rf"with +{TIME} .*",
                     rf"with / without, pair by pair: {number}, {number} \.\. {number} "
                     r"with \d+ % confidence",
                     r"Chosen for all_reduce of 64KiB to below 128KiB on 2 ranks: \w+.*",
                     r"Too few runs.*"):
            self.assertRegex(done.stdout, re.compile(f"^{line}$", re.MULTILINE))

    def test_too_few_calls_are_told(self):
        done = self.run_railpass("demo", "-n", 2, "--repetitions", 1, "--steps", 1, timeout=800)
        self.assertIn("No algorithm was chosen", done.stdout)

    def test_the_program_is_short_in_every_language(self):
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/first")
        for name in "first.c", "first.cpp", "first.f90", "first.py":
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                self.assertLessEqual(len(file.readlines()), 25, name)

    def test_refused(self):
        self.check_refused("demo", "--repetitions", 0, says="--repetitions")
        self.check_refused("demo", "--steps", 0, says="--steps")
        self.check_refused("demo", "-n", 1, says="-n")
        self.check_refused("demo", says="switches railpass off", environment={"RAILPASS": "off"})


if __name__ == "__main__":
    main()

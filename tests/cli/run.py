# SPDX-License-Identifier: BSL-1.0
"""railpass run: what the ranks it starts are given, and what it refuses. That calls are tuned then
is tested in tests/preload."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from program import ProgramTest, main  # noqa: E402

SHOW = ("sh", "-c", 'echo "$LD_PRELOAD|$RAILPASS_SEED|$0|$1"', "zero", "-n one")


class Run(ProgramTest):
    def test_every_rank_gets_library_settings_and_arguments(self):
        done = self.run_railpass("run", "-n", 3, *SHOW, environment={"RAILPASS_SEED": "7"})
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 3, done.stdout)
        for line in lines:
            preload, *others = line.split("|")
            self.assertEqual(os.path.basename(preload), "librailpass_preload.so")
            self.assertTrue(os.path.exists(preload), preload)
            self.assertEqual(others, ["7", "zero", "-n one"])

    def test_other_preloaded_libraries_stay(self):
        other = self.path("other.so")
        done = self.run_railpass("run", "-n", 1, *SHOW, environment={"LD_PRELOAD": other})
        self.assertTrue(done.stdout.split("|")[0].endswith(f"librailpass_preload.so:{other}"),
                        done.stdout)

    def test_verbose_shows_a_command_that_can_be_repeated(self):
        done = self.run_railpass("run", "-n", 1, "--verbose", *SHOW)
        shown = [line for line in done.stderr.splitlines() if line.startswith("railpass run: ")]
        self.assertEqual(len(shown), 1, done.stderr)
        again = self.start(["sh", "-c", shown[0].removeprefix("railpass run: ")])
        self.assertEqual(again.stdout, done.stdout)

    def test_more_ranks_than_cores_are_allowed_and_said(self):
        ranks = len(os.sched_getaffinity(0)) + 1
        if ranks > 16:
            self.skipTest("too many cores here")
        done = self.run_railpass("run", "-n", ranks, "true")
        self.assertIn(f"{ranks} ranks on the {ranks - 1} cores", done.stderr)

    def test_the_program_s_status_is_the_status(self):
        self.run_railpass("run", "-n", 1, "sh", "-c", "exit 3", status=3)

    def test_refused(self):
        self.check_refused("run", "-n", 2, says="expected a program")
        self.check_refused("run", "-n", 0, "true", says="at least 1 rank")
        self.check_refused("run", "true", says="--ranks is required")
        self.check_refused("run", "-n", 2, "--launcher", "echo", "true", says="--launcher 'echo'")


if __name__ == "__main__":
    main()

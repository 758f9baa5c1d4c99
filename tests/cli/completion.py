# SPDX-License-Identifier: BSL-1.0
"""Completion in Bash: verbs, options, collectives and algorithms."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from program import ProgramTest, main  # noqa: E402


class Completion(ProgramTest):
    def setUp(self):
        super().setUp()
        self.run_railpass("manual", self.folder)
        self.script = self.path("bash-completion/completions/railpass")

    def completed(self, line):
        """What Bash offers at the end of the line, which it splits at = and : too."""
        words = re.findall(r"[=:]|[^\s=:]+", line) + ([""] if line.endswith(" ") else [])
        asked = ("source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _railpass; "
                 "printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = self.start(["bash", "-c", asked, "bash", self.script, *words])
        self.assertEqual((done.returncode, done.stderr), (0, ""), line)
        return done.stdout.split()

    def test_words(self):
        for line, expected in {
                "railpass kn": ["knowledge"],
                "railpass help ver": ["verify"],
                "railpass knowledge exp": ["export"],
                "railpass verify --col": ["--collective"],
                "railpass verify --collective all_g": ["all_gather", "all_gatherv"],
                "railpass verify --collective=all_g": ["all_gather", "all_gatherv"],
                "railpass bench --collectives broadcast,sca": [
                    f"broadcast,{name}" for name in ("scatter", "scatterv", "scan")],
                "railpass verify --collective scan --algorithm n": ["native"],
                "railpass verify --algorithm=n --collective scan --algorithm=n": ["native"],
                "railpass schedule bro": ["broadcast:"],
                "railpass schedule broadcast:bino": ["binomial"],
                "railpass schedule --sv": ["--svg"],
                "railpass run x": []}.items():
            with self.subTest(line=line):
                self.assertCountEqual(self.completed(line), expected)

    def test_every_collective_and_algorithm(self):
        known = self.json_of("algorithms")
        self.assertCountEqual(self.completed("railpass predict --collective "), {a["collective"] for a in known})
        self.assertCountEqual(self.completed("railpass algorithms --algorithm "), {a["name"] for a in known})
        for line in "railpass predict --collective gather --arms ", "railpass schedule gather:":
            self.assertCountEqual(self.completed(line),
                                  [a["name"] for a in known if a["collective"] == "gather"])


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSL-1.0
"""railpass compare: both ways of a command are run in turn, timed and judged; nothing else is run."""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from program import MPIEXEC, PROGRAM, ProgramTest, main  # noqa: E402


class Compare(ProgramTest):
    def script(self, with_railpass, without):
        log = self.path("log")
        return log, ("sh", "-c", f'case "$LD_PRELOAD" in *librailpass_preload.so*) echo w >>{log}; '
                                 f'{with_railpass};; *) echo o >>{log}; {without};; esac')

    def test_pairs_in_turn_after_one_that_warms_up(self):
        log, script = self.script("true", "true")
        done = self.run_railpass("compare", "--repetitions", 3, "--json", self.path("r.json"), "--",
                                 *script)
        with open(log, encoding="utf-8") as file:
            self.assertEqual(file.read().split(), list("owwoowwo"))
        with open(self.path("r.json"), encoding="utf-8") as file:
            result = json.load(file)
        self.assertEqual(result["command"], list(script))
        for way in ("without", "with"):
            self.assertEqual(len(result[way]["seconds"]), 3)
            self.assertEqual(sorted(result[way]["seconds"])[1], result[way]["median_s"])
        ratios = sorted(a / b for a, b in zip(result["with"]["seconds"],
                                              result["without"]["seconds"]))
        self.assertEqual([result["ratio"][k] for k in ("low", "median", "high")], ratios)
        self.assertEqual(result["ratio"]["confidence"], 0.75)
        self.assertIn("Too few runs", done.stdout)
        self.assertIn("at least 6 repetitions", done.stdout)

    def test_words_reach_the_program_as_they_are(self):
        words = ["[a,b]", "[]", "--json", "-n", "--", ""]
        log = self.path("words")
        self.run_railpass("compare", "--repetitions", 1, "--json", self.path("r.json"), "--", "sh", "-c",
                          f'for w; do printf "%s|" "$w"; done >{log}', "sh", *words)
        with open(self.path("r.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["command"][4:], words)
        with open(log, encoding="utf-8") as file:
            self.assertEqual(file.read(), "".join(word + "|" for word in words))

    def test_results_go_where_they_can_be_written(self):
        self.check_refused("compare", "--json", self.folder, "--", "true", status=1,
                           says="expected a file in a folder that can be written")
        self.run_railpass("compare", "--repetitions", 1, "--json", "/dev/null", "--", "true")

    def test_the_verdict_is_what_the_interval_says(self):
        for sleeps in ("true", "true"), ("true", "sleep 0.2"), ("sleep 0.2", "true"):
            _, script = self.script(*sleeps)
            done = self.run_railpass("compare", "--repetitions", 6, "--json", self.path("r.json"),
                                     "--", *script)
            with open(self.path("r.json"), encoding="utf-8") as file:
                ratio = json.load(file)["ratio"]
            verdict = ("is faster" if ratio["high"] < 1 else
                       "is slower" if ratio["low"] > 1 else "No difference can be told")
            self.assertIn(verdict, done.stdout)
            self.assertIn("had the same standard output", done.stdout)

    def test_other_output_is_told(self):
        for writes, says in {("echo a", "echo b"): "standard output of the runs differs",
                             ("echo took 1.5e-3 s", "echo took -2 s"):
                             "had the same standard output except for numbers",
                             ("printf 'a\\0b'", "printf 'a\\0c'"): "standard output of the runs differs",
                             # More than is kept differs in the middle.
                             tuple("yes | head -c 5000000; echo " + word + "; yes | head -c 5000000"
                                   for word in ("a", "b")): "standard output of the runs differs"}.items():
            _, script = self.script(*writes)
            done = self.run_railpass("compare", "--repetitions", 1, "--", *script)
            self.assertIn(says, done.stdout)

    def test_ranks_give_way_both_ways_where_they_are_more_than_cores(self):
        launcher = self.write("mpiexec", f'#!/bin/sh\ncase "$1" in --version) exec {MPIEXEC} "$1";; esac\n')
        os.chmod(launcher, 0o755)
        many = len(os.sched_getaffinity(0)) + 1
        for words, crowded in ((("-n", 1), False), (("-n", many), True),
                               (("-host", "localhost", "-n", many), True),
                               (("-host", "elsewhere:999", "-n", many), False),
                               (("--bind-to", "none", "-n", many), False)):
            with self.subTest(words=words):
                done = self.run_railpass("compare", "--repetitions", 1, "--verbose", "--", launcher,
                                         *words, "true")
                added = sum("--oversubscribe" in line or "POLLS_BEFORE_YIELD" in line
                            for line in done.stderr.splitlines())
                self.assertEqual(added, 2 * int(crowded), done.stderr)

    def test_ranks_get_the_library_by_their_launcher(self):
        done = self.run_railpass("compare", "--repetitions", 1, "--verbose", "--", MPIEXEC, "-n", 2,
                                 "sh", "-c", 'sleep 0.2; echo "${LD_PRELOAD##*/}"')  # as in run.py
        shown = [line for line in done.stderr.splitlines() if line.startswith("railpass compare:")]
        self.assertEqual(len(shown), 2, done.stderr)
        self.assertNotIn("LD_PRELOAD=", shown[0])
        with_railpass = self.start(["sh", "-c", shown[1].split(": ", 2)[2]])
        self.assertEqual(with_railpass.stdout.split(), ["librailpass_preload.so"] * 2)

    def test_a_program_that_calls_railpass_does_not_without(self):
        log = self.path("log")
        script = ["sh", "-c", f'echo "$RAILPASS_ENABLE" >>{log}']
        for command in (script, [MPIEXEC, "-n", 1, *script]):
            self.run_railpass("compare", "--repetitions", 1, "--", *command,
                              environment={"RAILPASS_ENABLE": "on"})
            with open(log, encoding="utf-8") as file:
                self.assertEqual(file.read().split(), ["off", "on", "on", "off"])
            os.remove(log)

    def test_a_run_that_fails_is_named(self):
        _, script = self.script("echo broken >&2; exit 3", "true")
        done = self.run_railpass("compare", "--", *script, status=1)
        self.assertEqual(done.stderr.splitlines(),
                         ["railpass compare: the command with railpass: ended with status 3: broken"])
        _, script = self.script("printf 'bad\\t1\\nworse\\n' >&2; exit 3", "true")
        done = self.run_railpass("compare", "--", *script, status=1)
        self.assertEqual(done.stderr.splitlines(),
                         ["railpass: last output of the command with railpass:", "  bad\\t1", "  worse",
                          "railpass compare: the command with railpass: ended with status 3: worse"])

    def test_settings_that_railpass_does_not_follow_are_told_once(self):
        line = "railpass: RAILPASS_PLAN: p.json: cannot be read"
        _, script = self.script(f"echo {line} >&2; echo other >&2", "true")
        done = self.run_railpass("compare", "--repetitions", 2, "--", *script)
        self.assertEqual(done.stderr.splitlines(), [line])

    def interrupted(self, runs, number):
        """What compare says when the signal comes once it has started so many runs."""
        log = self.path("log")
        script = f"echo >>{log}; [ $(wc -l <{log}) -lt {runs} ] || exec sleep 600"
        with subprocess.Popen([PROGRAM, "compare", "--json", self.path("r.json"), "--", "sh", "-c", script],
                              env=self.settings(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as process:
            self.wait_until(lambda: os.path.exists(log) and os.path.getsize(log) == runs)
            process.send_signal(number)
            said, problem = process.communicate(timeout=300)
        os.remove(log)
        self.assertEqual(process.returncode, 1, problem)
        return said, problem

    def test_the_pairs_that_had_ended_are_shown_when_it_is_interrupted(self):
        for number in signal.SIGINT, signal.SIGTERM:
            said, problem = self.interrupted(6, number)
            self.assertTrue(said.startswith("1 runs each, in turn"), said)
            self.assertIn("interrupted: only 1 of 9 pairs of runs had ended", problem)
            with open(self.path("r.json"), encoding="utf-8") as file:
                result = json.load(file)
            self.assertEqual([result["repetitions"], *(len(result[w]["seconds"]) for w in ("with", "without"))],
                             [1, 1, 1])
        said, problem = self.interrupted(3, signal.SIGINT)
        self.assertEqual(said, "")
        self.assertIn("interrupted before a pair of runs had ended", problem)

    def test_refused(self):
        self.check_refused("compare", says="expected a command")
        self.check_refused("compare", "--repetitions", 0, "--", "true", says="--repetitions")
        self.check_refused("compare", "--limit", "soon", "--", "true", says="--limit")
        self.check_refused("compare", "--mpi", "lam", "--", "true", says="--mpi 'lam'")
        site = self.write("railpass.conf", "# of the site\nenable = off\n")
        for name, value, says in (("RAILPASS", "off", "RAILPASS=off switches railpass off"),
                                  ("RAILPASS_ENABLE", "OFF", "RAILPASS_ENABLE switches railpass off"),
                                  ("RAILPASS_CONF", site, f"{site}: line 2 switches railpass off")):
            self.check_refused("compare", "--", "true", says=says, environment={name: value})


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSL-1.0
"""railpass characterise: what the folder gets, that a second run continues, the job script, and what
is refused."""
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from pages import check_page  # noqa: E402
from program import MPIEXEC, PROGRAM, ProgramTest, main  # noqa: E402


class Characterise(ProgramTest):
    def launches(self):
        return sorted(os.listdir(self.path("found/launches")))

    def read(self, name):
        with open(self.path("found/" + name), encoding="utf-8") as file:
            return file.read()

    def command(self, budget="6s", ranks="2"):
        return ["characterise", "-o", self.path("found"), "-n", ranks, "--collectives",
                "broadcast,gather", "--budget", budget]

    def interrupt_after_launch(self, number, **of):
        with subprocess.Popen([PROGRAM, *self.command(**of)], env=self.settings(), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as running:
            self.wait_until(lambda: os.path.exists(self.path(f"found/launches/{number:04}.json")))
            running.send_signal(signal.SIGINT)
            errors = running.communicate(timeout=300)[1]
        self.assertEqual(running.returncode, 1, errors)
        self.assertIn("interrupted; run the same command again to resume", errors)
        self.assertTrue(os.path.exists(self.path("found/page.html")))

    def test_a_folder_that_other_verbs_read_and_that_an_interrupted_run_continues(self):
        self.interrupt_after_launch(1, budget="1min", ranks="2,3")
        self.assertIn("on 3 ranks: not measured yet", self.read("page.html"))
        first = self.launches()
        before = [self.read("samples.json")] + [self.read("launches/" + name) for name in first]
        self.interrupt_after_launch(max(len(first) + 1, 4), budget="1min")
        self.assertGreater(len(self.launches()), len(first))
        self.assertEqual([self.read("samples.json")] +
                         [self.read("launches/" + name) for name in first], before)
        # The time is over: nothing is measured again.
        all_launches = self.launches()
        done = self.run_railpass(*self.command(budget="1s"))
        self.assertEqual(self.launches(), all_launches)

        for words in ("launches in", "broadcast", "gather", "page: "):
            self.assertIn(words, done.stdout)
        bench = json.loads(self.read("bench_2.json"))
        self.assertEqual(bench["format"], "railpass bench")
        cells = {(r["collective"], r["bytes"]) for r in bench["results"]}
        self.assertEqual(len([c for c in cells if c[0] == "broadcast"]), 7)
        # The default, algorithms of the MPI library, and algorithms of railpass.
        kinds = {arm.split(":")[0] + ":" * (":" in arm) for arm in
                 (r["arm"] for r in bench["results"]) if arm.startswith("native")}
        self.assertEqual(kinds, {"native", "native:"})
        self.assertTrue([r for r in bench["results"] if not r["arm"].startswith("native")])
        self.run_railpass("predict", "--profile", self.path("found/profile.json"), "-p", 2,
                          "--collective", "broadcast")
        self.run_railpass("fit", self.path("found/samples.json"), self.path("found/bench_2.json"),
                          "-o", self.path("profile.json"))
        self.assertEqual(json.loads(self.read("plan.json"))["format"], "railpass plan")
        text = check_page(self, self.path("found/page.html"))
        for words in ("Gain over the default", "Use of the results", "Guidelines that the defaults violate",
                      "Cliffs of the defaults", "Time against size on 2 ranks"):
            self.assertIn(words, text)

    def test_what_a_second_run_does_with_other_launches(self):
        # A plan that is refused keeps no algorithm of railpass from being measured.
        self.run_railpass(*self.command(), environment={"RAILPASS_PLAN": self.path("none.json")})
        arms = {row["arm"] for row in json.loads(self.read("bench_2.json"))["results"]}
        self.assertTrue([arm for arm in arms if not arm.startswith("native")], arms)
        name = "found/launches/" + self.launches()[0]
        launch = json.loads(self.read(name[len("found/"):]))
        environment = launch["environment"]
        environment["notes"]["characterise/failure"] = "not enough slots"
        for number in 1, 2, len(self.launches()) + 1:
            self.write(f"found/launches/{number:04}.json", json.dumps(launch))
        done = self.run_railpass(*self.command())
        self.assertNotIn("launches in a row failed", done.stdout)
        failed = [launch for launch in map(self.read, ["launches/" + name for name in self.launches()])
                  if "not enough slots" in launch]
        self.assertEqual([json.loads(launch)["environment"]["notes"]["characterise/collectives"]
                          for launch in failed], ["", "", ""])
        # Their time stays spent.
        self.assertIn(f"{len(self.launches())} launches in", done.stdout)
        # The results are of all launches in the folder, whatever is asked for, and no plan stays that
        # these launches do not show.
        for file in self.launches():
            os.remove(self.path("found/launches/" + file))
        environment["notes"].update({"characterise/failure": "", "characterise/wall_s": "1000"})
        environment.update(num_ranks=3, ranks_per_node=3)
        natives = [row for row in launch["results"] if row["arm"] == "native"]
        launch["results"] = natives + [dict(row, arm="binomial", ratio_to_native=0.5) for row in natives]
        self.write("found/launches/0001.json", json.dumps(launch))
        self.write("found/plan.json", "{}")
        self.assertIn("gather on 2 ranks: not measured yet", self.run_railpass(*self.command()).stdout)
        self.assertIn("Time against size on 3 ranks", self.read("page.html"))
        self.assertEqual(json.loads(self.read("bench_3.json"))["environment"]["num_ranks"], 3)
        self.assertFalse(os.path.exists(self.path("found/plan.json")))
        environment["ranks_per_node"] = 1
        self.write("found/launches/0002.json", json.dumps(launch))
        self.check_refused(*self.command(), status=1, says=("1 per node, an earlier launch 3; name another folder",))

    def test_launches_that_go_wrong_count_as_failed(self):
        budget = ("characterise", "-o", self.path("found"), "-n", 2, "--collectives", "barrier", "--budget", "20s",
                  "--launcher")
        for does, says in (("echo '{'; exit 0", "railpass bench: "),
                           (f'shift 2; exec {MPIEXEC} -n 3 "$@"', "the launcher started 3 ranks instead of 2"),
                           (f'{MPIEXEC} "$@" | sed \'s/"ranks_per_node": *2/"ranks_per_node": 1/\'; exit 0',
                            "a launch of 2 ranks had 1 per node, an earlier launch 2")):
            with self.subTest(does=does):
                done = self.run_railpass(*budget, self.failing_launcher(2, does))
                self.assertIn("barrier on 2 ranks: measured no further, as two launches in a row failed, the last: "
                              + says, done.stdout)
                self.assertEqual(len(self.launches()), 3)
                self.assertTrue(os.path.exists(self.path("found/page.html")))
                shutil.rmtree(self.path("found"))
                os.remove(self.path("launches.log"))

    def test_a_job_script_instead(self):
        script = self.path("job.sh")
        self.run_railpass("characterise", "-o", self.path("found"), "-n", "4,6", "--budget", "30min",
                          "--slurm", script)
        with open(script, encoding="utf-8") as file:
            text = file.read()
        for words in ("#!/bin/bash\n", "#SBATCH --ntasks=6\n", "#SBATCH --time=46\n",
                      f" characterise -o {self.path('found')} -n 4,6 --launcher srun "
                      "--budget 30min "):
            self.assertIn(words, text)
        self.assertFalse(os.path.exists(self.path("found")))

    def test_refused(self):
        folder = self.path("found")
        self.check_refused("characterise", "-n", 2, says="--output is required")
        for ranks in "1", "2,x", "0":
            self.check_refused("characterise", "-o", folder, "-n", ranks, says="-n")
        self.check_refused("characterise", "-o", folder, "-n", 2, "--budget", "x", says="--budget")
        self.check_refused("characterise", "-o", folder, "-n", 2, "--collectives", "x",
                           says="--collectives")
        self.check_refused("characterise", "-o", folder, "-n", 2, says="switches railpass off",
                           environment={"RAILPASS_ENABLE": "no"})
        self.check_refused("characterise", "-o", self.write("file", ""), "-n", 2, status=1,
                           says="cannot be created")


if __name__ == "__main__":
    main()

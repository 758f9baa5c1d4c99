# SPDX-License-Identifier: BSL-1.0
"""A program whose collectives are tuned, started with the settings users set: what they promise must
be there after the run, and what is wrong with them must not harm it. The program is the benchmark, or one that
keeps what it learns."""
import contextlib
import copy
import csv
import json
import os
import signal
import subprocess

from support.program import MPIEXEC, PROGRAM, ProgramTest, main

BENCH = ("bench", "--bytes", "1KiB", "--budget", "1s", "--arms", "native,tuned")


class TunedProgram(ProgramTest):
    def run_with(self, **settings):
        environment = {f"RAILPASS_{name.upper()}": value for name, value in settings.items()}
        return self.run_ranks(2, *BENCH, environment=environment)

    def test_trace(self):
        trace = self.path("trace")
        self.run_with(trace=trace)
        for rank in range(2):
            with open(f"{trace}.{rank}", encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
            self.assertGreater(len(rows), 10)
            self.assertEqual({r["collective"] for r in rows}, {"broadcast", "all_reduce"})
            for row in rows:
                self.assertEqual(row["bytes"], "1024")
                self.assertGreater(float(row["seconds"]), 0)
                self.assertTrue(0 <= float(row["probability"]) <= 1)

    def test_both_ranks_take_the_same_arms(self):
        trace = self.path("trace")
        self.run_with(trace=trace, policy="round_robin")
        arms = []
        for rank in range(2):
            with open(f"{trace}.{rank}", encoding="utf-8", newline="") as file:
                arms.append([(r["communicator"], r["call"], r["arm"]) for r in csv.DictReader(file)])
        self.assertEqual(arms[0], arms[1])
        self.assertGreater(len({arm for _, _, arm in arms[0]}), 5)

    def test_pinned_arm(self):
        trace = self.path("trace")
        self.run_with(trace=trace, use="broadcast:binomial,all_reduce:ring")
        # Pinned calls are not the bandit's; nothing else may have run.
        with open(f"{trace}.0", encoding="utf-8", newline="") as file:
            self.assertEqual(list(csv.DictReader(file)), [])

    def test_a_killed_rank_leaves_no_memory(self):
        mark = f"railpass-memory-test-{os.getpid()}."

        def sharing():
            found = []
            for process in self.running(mark):
                with contextlib.suppress(OSError):  # it has ended
                    with open(f"/proc/{process}/maps", encoding="utf-8") as file:
                        if "memfd:railpass" in file.read():
                            found.append(process)
            return found

        # With all arms of all collectives it takes longer than anybody waits here.
        with subprocess.Popen([MPIEXEC, "-n", "2", PROGRAM, "bench", "--collectives", "all",
                               "--budget", "600s"],
                              env=self.settings({"MEMORY_TEST": mark}), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL) as job:
            try:
                self.wait_until(lambda: len(sharing()) == 2)
                os.kill(sharing()[0], signal.SIGKILL)
                self.assertNotEqual(job.wait(timeout=300), 0)
            finally:
                job.terminate()
        self.wait_until(lambda: sharing() == [])  # it has no name, so it is gone

    def test_timeline(self):
        trace = self.path("trace")
        self.run_with(trace=trace)
        self.run_railpass("timeline", f"{trace}.0", "--svg", self.path("life.svg"))
        with open(self.path("life.svg"), encoding="utf-8") as file:
            self.assertIn("in use from call 0<", file.read())
        self.check_refused("timeline", f"{trace}.0", "--svg", self.path("x.svg"), "--collective", "scan",
                           says="no calls of that collective", status=1)

    def test_what_is_wrong_is_said_once_and_harms_nothing(self):
        log = self.path("log")
        self.run_with(log=log, trace="/nonexistent/folder/trace",
                      stats="/nonexistent/folder/stats.json", seed="minus one", colour="red")
        with open(log, encoding="utf-8") as file:
            text = file.read()
        for word in ("/nonexistent/folder/trace", "/nonexistent/folder/stats.json",
                     "RAILPASS_SEED='minus one'", "'colour'"):
            self.assertIn(word, text)
        self.assertEqual(text.count("'colour'"), 2)  # once on each rank

    def test_switched_off(self):
        dump = self.path("dump.json")
        self.run_with(enable="0", stats=dump)
        self.assertEqual(self.json_of("stats", dump)["contexts"], [])

    def test_a_run_says_what_an_upgrade_changed(self):
        store, runs = self.path("store"), self.path("runs.json")

        def said_with(knowledge):
            done = self.start([MPIEXEC, "-n", "4", os.environ["TEST_HEAT"]],
                              {"RAILPASS_KNOWLEDGE": knowledge, "RAILPASS_SUMMARY": "1", "RAILPASS_POLICY": "round_robin"})
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stderr

        said = said_with(store)
        self.assertNotIn("kinds of calls", said)
        self.run_railpass("knowledge", "export", "--store", store, "-o", runs)
        with open(runs, encoding="utf-8") as file:
            content = json.load(file)
        self.assertEqual(len(content["runs"]), 1)
        now = content["runs"][0]
        self.assertEqual(now["was"]["kernel"], os.uname().release)
        # Copies of one run: their times agree, however busy the machine is.
        before = copy.deepcopy(now)
        before["machine_id"]["mpi_library"] = "An Older MPI"
        for context in before["contexts"]:
            for arm in context["arms"]:
                for time in ("mean_s", "low_s", "median_s", "high_s"):
                    arm[time] /= 1e6
        content["runs"] = [
            dict(run, ids=[f"{year}0101T12000{number}Z-0123456789abcdef"],
                 ended_at=f"{year}-01-01T12:00:0{number}Z")
            for run, year in ((before, 2020), (now, 2021)) for number in range(8)]
        self.run_railpass("knowledge", "import", self.write("runs.json", json.dumps(content)), "--store", store)
        said = said_with(store)
        self.assertRegex(said, r"railpass: since .* \(MPI library .* instead of An Older MPI\) [1-9][0-9]* of "
                               r"[0-9]+ kinds of calls take longer and 0 shorter; the most: ")
        said = said_with("off")
        self.assertNotIn("kinds of calls", said)

    def test_dump_is_replaced_as_a_whole(self):
        dump = self.write("dump.json", "what was there before")
        self.run_with(stats=dump)
        self.assertGreater(len(self.json_of("stats", dump)["contexts"]), 0)
        self.assertEqual(sorted(os.listdir(self.folder)), ["dump.json"])


if __name__ == "__main__":
    main()

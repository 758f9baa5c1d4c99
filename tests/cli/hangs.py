# SPDX-License-Identifier: BSL-1.0
"""Hangs: a run is killed, and the next one avoids the arm that hung, or names the rank that was missing."""
import json
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from program import MPIEXEC, ProgramTest, main  # noqa: E402

RANKS = 3
PERIOD_S = 0.2


def has_ended(process):
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


@unittest.skipUnless("TEST_CHECKS" in os.environ, "needs the program of mpi.checks")
class Hangs(ProgramTest):
    def setUp(self):
        super().setUp()
        self.own = self.path("own")
        self.store = {"RAILPASS_KNOWLEDGE": self.own, "RAILPASS_HANG_REPORT": str(PERIOD_S)}

    def records(self):
        """What the ranks that make no progress have written, by rank."""
        found = {}
        folder = os.path.join(self.own, "halted")
        for name in os.listdir(folder) if os.path.exists(folder) else []:
            if not name.endswith(".json"):
                continue
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                text = file.read()
            if text:
                for call in json.loads(text)["calls"]:
                    if call["name"] == "hangs":
                        found[call["rank"]] = call
        return found

    def hang(self, case, waiting, others=0):
        """Starts a run, and returns its processes once so many ranks hang for long enough."""
        command = [MPIEXEC, "-n", str(RANKS), os.environ["TEST_CHECKS"], case]
        run = subprocess.Popen(command, env=self.settings(self.store), stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(run.wait)
        self.addCleanup(self.kill)

        def hangs():
            calls = self.records().values()
            stuck = [c for c in calls if c["arm"] and c["unchanged_s"] > 3 * PERIOD_S]
            return len(stuck) == waiting and len(calls) == waiting + others

        self.wait_until(hangs)
        return run

    def kill(self):
        for process in self.running(self.own):
            os.kill(process, signal.SIGKILL)

    def end(self, run):
        processes = self.running(self.own)
        self.kill()
        run.wait()
        # A process that ends has no environment before it lets go of its files.
        self.wait_until(lambda: all(map(has_ended, processes)) and not self.running(self.own))

    def listed(self):
        return self.json_of("quarantine", "list", environment=self.store)

    def run_case(self, case):
        result = self.start([MPIEXEC, "-n", str(RANKS), os.environ["TEST_CHECKS"], case], self.store)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result

    def test_the_next_run_avoids_the_arm_that_hung(self):
        run = self.hang("an arm loses its messages", RANKS)
        self.assertEqual(self.listed(), {"quarantined": [], "hangs": [], "problems": []})  # it lives
        self.assertEqual(len(self.records()), RANKS)
        self.end(run)
        after = self.run_case("the algorithm that an earlier run has put into quarantine is not used")
        said = [line for line in after.stderr.splitlines() if "an earlier run ended while" in line]
        self.assertEqual(len(said), 1, after.stderr)
        for words in ("all 3 ranks of communicator 'hangs'", "call 3 (all_gather of 12288 bytes, arm ring)",
                      "no later run uses ring for all_gather"):
            self.assertIn(words, said[0])
        found = self.listed()
        self.assertEqual(found["hangs"], [])  # said once
        [record] = found["quarantined"]
        self.assertEqual((record["collective"], record["algorithm"], record["num_ranks"]),
                         ("all_gather", "ring", RANKS))
        self.assertEqual(len(record["hung_on"]), 1)

    def check_missing(self, case, words, others):
        self.end(self.hang(case, RANKS - 1, others))
        found = self.listed()
        self.assertEqual(found["quarantined"], [])
        [said] = found["hangs"]
        self.assertIn("2 of 3 ranks of communicator 'hangs' waited inside call 3", said)
        self.assertIn(words, said)
        self.assertEqual(self.records(), {})
        self.assertEqual(self.listed()["hangs"], [])

    def test_a_rank_that_makes_no_call_is_named(self):
        self.check_missing("the last rank makes no call", "began call 2 (all_gather", others=1)

    def test_a_rank_that_is_stopped_is_named(self):
        self.check_missing("the last rank is stopped", ": rank 2 left no record", others=0)

    def test_records_in_a_store_that_rank_0_does_not_have_go_away(self):
        self.end(self.hang("the last rank makes no call", RANKS - 1, 1))
        folder = os.path.join(self.own, "halted")
        left = [name for name in os.listdir(folder) if name.endswith(".json")]
        self.assertEqual(len(left), RANKS)
        other_store = 'case "$OMPI_COMM_WORLD_RANK$PMI_RANK" in 0) RAILPASS_KNOWLEDGE=$0.rank0;; esac; exec "$@"'
        run = subprocess.Popen([MPIEXEC, "-n", str(RANKS), "sh", "-c", other_store, self.own, os.environ["TEST_CHECKS"],
                                "the last rank makes no call"], env=self.settings(self.store),
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(run.wait)
        self.addCleanup(self.kill)
        self.wait_until(lambda: not set(left) & set(os.listdir(folder)))
        self.end(run)

    def test_a_run_that_ends_leaves_nothing(self):
        self.run_case("the last rank is late")
        self.assertEqual(self.records(), {})
        self.assertEqual(self.listed(), {"quarantined": [], "hangs": [], "problems": []})


if __name__ == "__main__":
    main()

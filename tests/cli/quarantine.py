# SPDX-License-Identifier: BSL-1.0
"""railpass quarantine: a run meets a fault, the next one avoids it, until somebody lifts it."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from program import MPIEXEC, ProgramTest, main  # noqa: E402

RECORD = {"format": "railpass quarantine", "version": 1, "mpi_library": "Some MPI 1.0",
          "railpass_version": "0.2.0", "found_at": "2026-01-31T12:00:00Z",
          "collective": "all_reduce", "algorithm": "ring", "variant": "ring", "num_ranks": 4,
          "ranks_per_node": 2, "bytes": 4096, "elements": "MPI_INT",
          "difference": "1 wrong byte, from byte 0 on, on rank 2 on host n1"}


class Quarantine(ProgramTest):
    def setUp(self):
        super().setUp()
        self.own, self.site = self.path("own"), self.path("site")

    def add(self, store, name="one.json", **facts):
        os.makedirs(os.path.join(store, "quarantine"), exist_ok=True)
        return self.write(os.path.join(store, "quarantine", name), json.dumps(RECORD | facts))

    def listed(self, *stores):
        found = self.json_of("quarantine", "list",
                             environment={"RAILPASS_KNOWLEDGE": ":".join(stores), "RAILPASS_SITE": self.site})
        return [(q["collective"] + ":" + q["algorithm"], q["counts"])
                for q in found["quarantined"]]

    def test_records_are_listed_and_lifted(self):
        self.assertIn("No algorithm is in quarantine",
                      self.run_railpass("quarantine", "list", "--store", self.own).stdout)
        self.add(self.own)
        self.add(self.own, "two.json", algorithm="bine")
        text = self.run_railpass("quarantine", "list", "--store", self.own, "--wide").stdout
        for word in ("all_reduce:ring", "Some MPI 1.0", "2026-01-31", "rank 2 on host n1"):
            self.assertIn(word, text)
        self.run_railpass("quarantine", "lift", "all_reduce:ring", "--store", self.own)
        self.assertEqual(self.listed(self.own), [("all_reduce:bine", True)])
        self.check_refused("quarantine", "lift", "all_reduce:ring", "--store", self.own, status=1,
                           says="not in quarantine")
        self.check_refused("quarantine", "lift", "--store", self.own, says="--all")
        self.run_railpass("quarantine", "lift", "--all", "--store", self.own)
        self.assertEqual(self.listed(self.own), [])

    def test_only_a_site_quarantines_native(self):
        self.add(self.own, algorithm="native", variant="native")
        self.assertEqual(self.listed(self.own), [("all_reduce:native", False)])
        other = self.path("other")
        for store in (other, self.site):
            self.add(store, algorithm="native", variant="native")
        self.assertEqual([counts for _, counts in self.listed(self.own, other)], [False, False, True])
        self.assertEqual([counts for _, counts in self.listed(self.own, self.site)], [False, True])
        for store, counts in (other, False), (self.site, True):
            found = self.json_of("quarantine", "list", "--store", store, environment={"RAILPASS_SITE": self.site})
            self.assertEqual({q["counts"] for q in found["quarantined"] if q["algorithm"] == "native"}, {counts})

    def test_files_that_are_wrong_are_said_and_left(self):
        self.add(self.own)
        path = self.add(self.own, "wrong.json", algorithm="none_such")
        result = self.run_railpass("quarantine", "list", "--store", self.own)
        self.assertIn("none_such", result.stderr)
        self.assertIn("all_reduce:ring", result.stdout)
        self.assertTrue(os.path.exists(path))

    def test_bench_avoids_what_is_in_quarantine_and_keeps_nothing(self):
        settings = {"RAILPASS_KNOWLEDGE": self.own}
        bench = ("bench", "--collectives", "all_gather", "--bytes", "1KiB", "--budget", "200ms", "--arms",
                 "native,tuned,ring", "--all", "--json", "-")

        def arms():
            found = json.loads(self.run_ranks(3, *bench, environment=settings).stdout)
            self.assertFalse(os.path.exists(os.path.join(self.own, "machines")))
            return found["environment"]["machine_id"]["mpi_library"], {row["arm"] for row in found["results"]}

        library, found = arms()
        self.assertIn("ring", found)
        self.add(self.own, collective="all_gather", mpi_library=library)
        _, found = arms()
        self.assertEqual(found, {"native", "tuned"})
        settings["RAILPASS_KNOWLEDGE"] = "off"
        _, found = arms()
        self.assertIn("ring", found)
        self.add(self.site, collective="all_gather", mpi_library=library)
        settings["RAILPASS_SITE"] = self.site
        for settings["RAILPASS_KNOWLEDGE"] in "off", self.path("empty"):
            _, found = arms()
            self.assertEqual(found, {"native", "tuned"})

    @unittest.skipUnless("TEST_CHECKS" in os.environ, "needs the program of mpi.checks")
    def test_the_next_run_avoids_what_a_run_has_found(self):
        settings = {"RAILPASS_KNOWLEDGE": self.own}

        def run(case):
            result = self.start([MPIEXEC, "-n", "3", os.environ["TEST_CHECKS"], case], settings)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

        run("an arm that moves wrong data*")
        self.assertEqual(self.listed(self.own), [("all_gather:ring", True)])
        run("the algorithm that an earlier run has put into quarantine is not used")
        self.run_railpass("quarantine", "lift", "all_gather:ring", "--store", self.own)
        run("no algorithm is in quarantine")


if __name__ == "__main__":
    main()

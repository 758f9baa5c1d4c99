# SPDX-License-Identifier: BSL-1.0
"""railpass stats --hosts: which hosts a statistics dump names, and which dumps it refuses."""
import csv
import io
import json

from support.program import ProgramTest, main


def difference(value, reach, is_named=False):
    return {"value": value, "low": value - reach, "high": value + reach, "is_named": is_named}


def host(number, **facts):
    return {"host": number, "first_rank": 4 * number, "num_ranks": 4} | facts


ALIKE = [host(h, late_s=difference(0, 1e-3), starved_share=difference(0, 0.05)) for h in (0, 1)]


class SlowHosts(ProgramTest):
    def dump(self, hosts):
        return self.write("stats.json", json.dumps({
            "format": "railpass statistics", "version": 1, "written_at": "2026-01-31T12:00:00Z",
            "machine_id": {"num_hosts": 2, "cores_per_host": 8, "cpu_model": "c",
                           "mpi_library": "m"},
            "merges": 1, "merge_cost_s": 0.0, "contexts": [], "rails": [], "hosts": hosts}))

    def text(self, hosts, *options):
        return self.run_railpass("stats", self.dump(hosts), "--hosts", *options).stdout

    def test_hosts_that_are_alike(self):
        text = self.text(ALIKE)
        self.assertIn("No host differs", text)
        self.assertIn("4 from 4", text)
        self.assertIn("0.0 % (-5.0 % .. 5.0 %)", text)

    def test_named_hosts_with_intervals(self):
        text = self.text([ALIKE[0],
                          host(1, name="n7", late_s=difference(2e-3, 1e-3, True),
                               starved_share=difference(0.5, 0.2, True),
                               link_factor=difference(2.0, 0.5, True))])
        self.assertIn("host n7: comes late to calls, its ranks wait for a core, its link is slow",
                      " ".join(text.split()))
        self.assertIn("2.00x (1.50x .. 2.50x) *", text)
        self.assertIn("2.00 ms (1.00 ms .. 3.00 ms) *", text)
        self.assertNotIn("host 0:", text)
        self.assertIn("| n7 |", self.text([host(0, name="n7")], "--markdown"))

    def test_numbers_for_programs(self):
        rows = list(csv.DictReader(io.StringIO(self.text(ALIKE, "--csv"))))
        self.assertEqual([(r["host"], r["first_rank"], r["late_s_named"],
                           r["starved_share_high"]) for r in rows],
                         [("0", "0", "0", "0.05"), ("1", "4", "0", "0.05")])

    def test_a_run_without_hosts(self):
        self.assertIn("The statistics have no hosts", self.text([]))

    def test_programs_that_run(self):
        said = self.run_railpass("stats", "--running").stdout
        self.assertRegex(said, "Running: |No program on this host has a board")
        shown = json.loads(self.run_railpass("stats", "--running", "--json", "-").stdout)
        self.assertEqual(set(shown), {"running", "skipped"})
        self.check_refused("stats", says="the argument 'dump' is missing: give a file, or --running")
        self.check_refused("stats", self.dump([]), "--running", says="--running")

    def test_what_is_refused(self):
        for bad, says in ((difference(1, -2), "hosts[0].late_s.value"),
                          ({"value": 1, "low": 0, "is_named": True}, "high")):
            self.check_refused("stats", self.dump([host(0, late_s=bad)]), "--hosts", status=1,
                               says=says)
        self.check_refused("stats", self.dump([host(0) | {"num_ranks": 0}]), "--hosts", status=1,
                           says="num_ranks")


main()

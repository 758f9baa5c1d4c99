# SPDX-License-Identifier: BSL-1.0
"""railpass freeze: which variants a plan gets from files and stores, and what freeze refuses. That
programs follow a plan is tested in tests/preload."""
import json
import os

from support.program import ProgramTest, main


class Freeze(ProgramTest):
    def bench(self, name, cpu="a", at="2026-01-31T12:00:00Z", **times_us):
        """Results of broadcasts of 1000 bytes on 8 ranks."""
        results = [{"collective": "broadcast", "bytes": 1000, "arm": arm, "median_s": us * 1e-6,
                    "p90_s": us * 1.1e-6, "runs": 100, "ratio_to_native": None, "spread_s": us * 1e-7}
                   for arm, us in times_us.items()]
        return self.write(name, json.dumps({
            "format": "railpass bench", "version": 1,
            "environment": {"machine_id": {"num_hosts": 1, "cores_per_host": 8, "cpu_model": cpu,
                                           "mpi_library": "m"},
                            "measured_at": at, "num_ranks": 8, "ranks_per_node": 8, "notes": {}},
            "results": results, "learning": []}))

    def variants(self, *paths, says="", **options):
        plan = self.path("plan.json")
        done = self.run_railpass("freeze", "-o", plan, *paths, **options)
        self.assertIn(says, done.stderr)
        self.assertIn("variant", done.stdout)
        with open(plan, encoding="utf-8") as file:
            content = json.load(file)
        self.assertEqual(content["format"], "railpass plan")
        return content["machine_id"]["cpu_model"], [
            (c["collective"], c["num_ranks"], c["from_bytes"], c.get("to_bytes"), c["variant"])
            for c in content["calls"]]

    def test_the_fastest_arm_or_native(self):
        fast = self.bench("fast", native=10, binomial=8, chain=9)
        self.assertEqual(self.variants(fast), ("a", [("broadcast", 8, 512, 1023, "binomial")]))
        slow = self.bench("slow", native=10, binomial=11)
        self.assertEqual(self.variants(slow), ("a", [("broadcast", 8, 512, 1023, "native")]))
        done = self.run_railpass("freeze", "-o", self.path("plan.json"), slow)
        self.assertIn("the plan changes nothing", done.stdout)

    def test_standard_output_is_the_plan_alone(self):
        done = self.run_railpass("freeze", "-o", "-", self.bench("fast", native=10, binomial=8))
        self.assertEqual(json.loads(done.stdout)["calls"][0]["variant"], "binomial")

    def test_stores_and_files_together(self):
        store = {"RAILPASS_KNOWLEDGE": self.path("store")}
        self.run_railpass("knowledge", "import", self.bench("one", native=10, binomial=8),
                          environment=store)
        plan = ("a", [("broadcast", 8, 512, 1023, "binomial")])
        self.assertEqual(self.variants(environment=store), plan)
        self.assertEqual(self.variants(self.path("store")), plan)
        # Means weigh more than the run before.
        later = self.bench("two", at="2026-02-01T12:00:00Z", native=10, binomial=20, chain=7)
        self.assertEqual(self.variants(later, self.path("store"))[1][0][-1], "chain")

    def test_the_machine_that_was_used_last(self):
        new = self.bench("new", cpu="b", at="2026-02-01T12:00:00Z", native=10, chain=8)
        old = self.bench("old", native=10, binomial=8)
        for paths in (new, old), (old, new):
            self.assertEqual(
                self.variants(*paths, says="another machine, last used 2026-01-31: made on a machine "
                              "with the CPU 'a', this machine has 'b'"),
                ("b", [("broadcast", 8, 512, 1023, "chain")]))

    def test_a_store_that_no_run_has_written(self):
        self.check_refused("freeze", "-o", self.path("p"), status=1,
                           environment={"RAILPASS_KNOWLEDGE": self.path("no-store")},
                           says=("no-store: no run has written knowledge yet", "railpass run"))

    def test_what_is_refused(self):
        self.check_refused("freeze", "-o", self.path("p"), self.path("none"), status=1,
                           says=("cannot be opened",))
        self.check_refused("freeze", "-o", self.path("p"), self.write("x", "{}"), status=1,
                           says=("expected statistics, bench results or exported knowledge",))
        os.mkdir(self.path("empty"))
        self.check_refused("freeze", "-o", self.path("p"), self.path("empty"), status=1,
                           says=("not a store of knowledge",))
        self.check_refused("freeze", says=("--output is required",))
        self.assertFalse(os.path.exists(self.path("p")))


main()

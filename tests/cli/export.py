# SPDX-License-Identifier: BSL-1.0
"""railpass export: the MPI library itself follows the files, as a preloaded library sees (tests/export)."""
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from program import MPIEXEC, PROGRAM, ProgramTest, main  # noqa: E402

FAMILY = os.environ["TEST_MPI_FAMILY"]
BROADCASTS, SEEN = os.environ["TEST_BROADCASTS"], os.environ["TEST_SEEN"]
CLUSTER = os.environ["TEST_CLUSTER"]
RANKS, CALLS = 4, 10
# An algorithm that is never the default of short messages, and what shows it: calls of Open MPI's
# function on all ranks, or messages of MPICH's ranks (3 of a tree, and of the ring 3 + 4 * 3 a call).
ALGORITHM = {"openmpi": "pipeline", "mpich": "scatter_ring_allgather"}.get(FAMILY)
SIZES = (500, 2000)


def seen_in(text):
    """What the ranks have counted, together."""
    counts = re.findall(r"^seen pipeline (\d+) binomial \d+ sent (\d+)$", text, re.M)
    return sum(int(pipeline if FAMILY == "openmpi" else sent) for pipeline, sent in counts)


@unittest.skipIf(ALGORITHM is None, f"SKIPPED: railpass writes no rules for {FAMILY}")
class Export(ProgramTest):
    def preloading(self, environment=None):
        preload = ":".join(filter(None, [SEEN, os.environ.get("LD_PRELOAD")]))
        return {"LD_PRELOAD": preload} | (environment or {})

    def bench(self, *arguments, budget="2s", **options):
        """A bench of one launch, with what the preloaded library has seen."""
        path = self.path("bench.json")
        done = self.run_ranks(RANKS, "bench", "--collectives", "broadcast", "--budget", budget, "--bytes",
                              ",".join(map(str, SIZES)), "--json", path, *arguments,
                              environment=self.preloading(), **options)
        with open(path, encoding="utf-8") as file:
            return json.load(file), seen_in(done.stderr)

    def measured(self, name="own.json", ratio=0.5, arm=f"native:{ALGORITHM}", launches=6,
                 more="", ranks=RANKS):
        """A bench whose times are made up, so that one algorithm is the fastest; its algorithms, their
        numbers and the machine are measured."""
        bench, _ = self.bench("--arms", f"native,native:{ALGORITHM}{more}")
        bench["environment"] |= {"num_ranks": ranks, "ranks_per_node": ranks}
        for row in bench["results"]:
            if row["arm"] == f"native:{ALGORITHM}":
                row |= {"arm": arm, "ratio_to_native": ratio, "launch_ratios": [ratio] * launches,
                        "launch_medians_s": [1e-3 * ratio] * launches}
        return self.write(name, json.dumps(bench))

    def rules(self, *files):
        """Writes the rules; returns the settings that the program prints."""
        path = self.path("rules")
        said = self.run_railpass("export", "--format", FAMILY, *files, "-o", path).stdout
        settings = dict(re.findall(r"^  (\w+)=(.*)$", said, re.M))
        self.assertIn(path, settings.values())
        return settings, said

    def broadcasts(self, size, settings, ranks=RANKS):
        done = self.start([MPIEXEC, "-n", str(ranks), BROADCASTS, str(CALLS), str(size)],
                          self.preloading(settings))
        self.assertEqual(done.returncode, 0, done.stderr)
        return seen_in(done.stderr)

    def test_bench_forces_algorithms(self):
        bench, count = self.bench("--arms", "native")
        self.assertNotIn("own_algorithms", bench)
        if FAMILY == "openmpi":
            self.assertEqual(count, 0)
        arm = f"native:{ALGORITHM}"
        bench, count = self.bench("--arms", f"native,{arm}")
        self.assertEqual([a["name"] for a in bench["own_algorithms"]], [ALGORITHM])
        runs = sum(row["runs"] for row in bench["results"] if row["arm"] == arm)
        self.assertGreater(runs, 10)
        if FAMILY == "openmpi":  # in these calls, and in no others
            self.assertEqual(count, RANKS * (runs + len(SIZES)))

    def test_an_algorithm_that_cannot_run_is_left_out(self):
        algorithm = {"openmpi": "two_proc", "mpich": "recursive_doubling"}[FAMILY]
        path = self.path("bench.json")
        self.run_ranks(3, "bench", "--collectives", "all_gather", "--bytes", "48", "--budget", "2s", "--json", path,
                       "--arms", f"native,native:{algorithm}")
        with open(path, encoding="utf-8") as file:
            bench = json.load(file)
        self.assertEqual(bench["environment"]["notes"][f"all_gather/48/left_out/native:{algorithm}"],
                         "the MPI library refuses it here")
        self.assertEqual([row["arm"] for row in bench["results"]], ["native"])

    def test_all_algorithms_are_measured_side_by_side(self):
        bench, _ = self.bench("--arms", "native,native:all,native:all:1KiB", budget="8s")
        arms = {row["arm"] for row in bench["results"] if row["bytes"] == SIZES[1]}
        names = [a["name"] for a in bench["own_algorithms"]]
        self.assertIn("binomial", names)
        self.assertIn("native", arms)
        self.assertTrue({a.split(":")[1] for a in arms - {"native"}} <= set(names), arms)
        segmented = [a for a in arms if a.endswith(":1024")]
        self.assertEqual(bool(segmented), FAMILY == "openmpi", arms)

    def test_what_bench_refuses(self):
        for arm, says in (("native:", "expected an algorithm"), ("native:chain:x", "expected a size"),
                          ("native:binomal", "did you mean 'binomial'")):
            self.check_ranks_refused(2, "bench", "--collectives", "broadcast", "--arms", arm, says=says)

    def test_other_readers_of_bench_files_leave_the_algorithms_alone(self):
        own = self.measured(more=",binomial")
        self.run_railpass("fit", own, "-o", self.path("profile.json"))
        with open(self.path("profile.json"), encoding="utf-8") as file:
            self.assertNotIn(ALGORITHM, file.read())
        self.run_railpass("report", own, "-o", self.path("page.html"))
        known = self.path("known")
        self.run_railpass("knowledge", "import", own, environment={"RAILPASS_KNOWLEDGE": known})
        said = self.run_railpass("knowledge", "show", environment={"RAILPASS_KNOWLEDGE": known}).stdout
        self.assertNotIn(ALGORITHM, said)

    def test_the_library_follows_the_rules(self):
        settings, said = self.rules(self.measured())
        self.assertRegex(said, rf"broadcast +{RANKS} .*{ALGORITHM}")
        for size in (SIZES[0], 1000, SIZES[1]):
            with self.subTest(size=size):
                followed, default = self.broadcasts(size, settings), self.broadcasts(size, {})
                if FAMILY == "openmpi":
                    self.assertEqual((followed, default), (RANKS * CALLS, 0))
                else:
                    self.assertEqual(followed - default, 12 * CALLS)
        for size in (SIZES[0] - 1, SIZES[1] + 1):  # the default
            with self.subTest(size=size):
                self.assertEqual(self.broadcasts(size, settings), self.broadcasts(size, {}))

    def test_other_numbers_of_ranks_take_the_default(self):
        settings, _ = self.rules(self.measured())
        for ranks in (RANKS - 1, RANKS + 1):
            with self.subTest(ranks=ranks):
                self.assertEqual(self.broadcasts(1000, settings, ranks), self.broadcasts(1000, {}, ranks))

    def test_a_file_without_rules_changes_nothing(self):
        settings, said = self.rules(self.measured(ratio=0.97))
        self.assertIn("No rule", said)
        self.assertEqual(self.broadcasts(1000, settings), self.broadcasts(1000, {}))

    def broadcasts_on_two_hosts(self, ranks, settings):
        words = [word for name, value in (settings | {"LD_PRELOAD": SEEN, "UCX_LOG_FILE": "stderr"}).items()
                 for word in ("--env", f"{name}={value}")]
        # MPICH 4.0 over UCX sometimes waits for ever in MPI_Finalize (2 of 40 launches beside six busy
        # processes, without railpass).
        for _ in range(5):
            done = self.start([sys.executable, CLUSTER, "--name", f"x{os.getpid()}x", "run", "--mpi", FAMILY,
                               "--hosts", "2", "--ranks-per-host", str(ranks // 2), "--no-yield", "--timeout", "40",
                               *words, "--", BROADCASTS, str(CALLS), "1000"])
            if FAMILY == "openmpi" or "did not end" not in done.stderr:
                break
        if done.returncode == 77:
            self.skipTest(done.stdout + done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        return seen_in(done.stderr)

    def test_two_hosts_follow_the_rules(self):
        # MPICH takes a broadcast on several ranks of each host apart.
        ranks = RANKS if FAMILY == "openmpi" else 2
        settings, _ = self.rules(self.measured(ranks=ranks))
        followed = self.broadcasts_on_two_hosts(ranks, settings)
        if FAMILY == "openmpi":
            self.assertEqual(followed, ranks * CALLS)
        else:  # 3 messages a call instead of 1
            self.assertEqual(followed - self.broadcasts_on_two_hosts(ranks, {}), 2 * CALLS)

    def test_what_export_refuses(self):
        def refused(says, *files, form=FAMILY, out="rules", status=1):
            self.check_refused("export", "--format", form, *files, "-o", self.path(out), says=says, status=status)

        own = self.measured()
        self.write("rules", "as they were")
        refused("too few launches (5)", self.measured("five.json", launches=5))
        refused("no time of the MPI library's own algorithms", self.measured("ours.json", arm="pipeline"))
        refused("own_algorithms", self.measured("other.json", arm="native:other"))
        other = "mpich" if FAMILY == "openmpi" else "openmpi"
        refused(("own.json", "but the rules are for"), own, form=other)
        refused("no-such.json", self.path("no-such.json"))
        refused(("--format", "expected one of openmpi, mpich"), own, form="openmp", status=2)
        with open(self.path("rules"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "as they were")
        refused("no/folder", own, out="no/folder")
        if FAMILY == "mpich":
            self.check_refused("export", "--format", "mpich", own, "-o", self.path("rules"), "--library", PROGRAM,
                               says="--library", status=1)

    def test_standard_output_is_the_file_alone(self):
        own = self.measured()
        self.rules(own)
        done = self.run_railpass("export", "--format", FAMILY, own, "-o", "-")
        with open(self.path("rules"), encoding="utf-8") as file:
            self.assertEqual(done.stdout, file.read())
        self.assertIn("Settings", done.stderr)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSL-1.0
"""railpass knowledge: what is added is shown, once; what is wrong with files is said and left."""
import json
import os
import shutil
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from program import PROGRAM, ProgramTest, main  # noqa: E402

MACHINE = {"num_hosts": 4, "cores_per_host": 8, "cpu_model": "Imaginary 3000",
           "mpi_library": "Some MPI 1.0"}


def arm(name, samples, mean_s, **more):
    return {"arm": name, "calls": 2 * samples, "samples": samples, "time_s": 2 * samples * mean_s,
            "mean_s": mean_s, "spread": 0.1, "probability": 0.5, "exploration_cost_s": 0, **more}


def dump(written_at="2026-01-31T12:00:00Z", ranks=32, first_bytes=(1024, 65536), machine=MACHINE):
    return {"format": "railpass statistics", "version": 1, "machine_id": machine,
            "written_at": written_at, "merges": 1, "merge_cost_s": 0, "contexts": [
                {"communicator": "MPI_COMM_WORLD", "collective": "broadcast", "num_ranks": ranks,
                 "ranks_per_node": 8, "from_bytes": n, "to_bytes": 2 * n - 1, "first_bytes": n,
                 "operation": "none", "policy": "thompson", "current_arm": "binomial",
                 "reason": "", "calls": 300, "time_s": 1, "exploration_cost_s": 0, "arms": [
                     arm("native", 50, 2e-3),
                     arm("binomial", 100, 1e-3,
                         pairs={"pairs": 40, "wins": 40, "gain": 0.6931, "deviation": 0.01}),
                     arm("linear", 10, 5e-3)]}
                for n in first_bytes]}


class Knowledge(ProgramTest):
    def setUp(self):
        super().setUp()
        self.store = self.path("store")

    def knowledge(self, *arguments, **options):
        return self.run_railpass("knowledge", *arguments, "--store", self.store, **options)

    def knowledge_json(self, *arguments, **options):
        return self.json_of("knowledge", *arguments, "--store", self.store, **options)

    def add(self, name="dump.json", **facts):
        return self.knowledge_json("import", self.write(name, json.dumps(dump(**facts))))

    def files(self):
        return sorted(os.path.join(folder, name) for folder, _, names in os.walk(self.store)
                      for name in names)

    def test_what_is_imported_is_shown(self):
        found = self.add()
        self.assertEqual((found["added"], found["present"], found["contexts"]), (1, 0, 2))
        self.add("later.json", written_at="2026-03-01T12:00:00Z")
        machine, = self.knowledge_json("list")["machines"]
        self.assertEqual(machine["machine_id"], MACHINE)
        self.assertEqual((machine["runs"], machine["contexts"], machine["files"]), (2, 2, 0))
        self.assertEqual((machine["first_at"], machine["last_at"]),
                         ("2026-01-31T12:00:00Z", "2026-03-01T12:00:00Z"))
        self.assertEqual(machine["bytes"], sum(map(os.path.getsize, self.files())))
        for context in self.knowledge_json("show")["contexts"]:
            self.assertEqual((context["best_arm"], context["samples"], context["runs"]),
                             ("binomial", 200, 2))
            self.assertAlmostEqual(context["speedup"], 2, places=3)
        self.assertIn("Imaginary 3000", self.knowledge("list").stdout)
        text = self.knowledge("show").stdout
        self.assertIn("2.00 (1.9", text)
        self.assertIn("64KiB", text)

    def test_filters(self):
        self.add()
        self.add("other.json", ranks=64)
        self.assertEqual(len(self.knowledge_json("show")["contexts"]), 4)
        of_64 = self.knowledge_json("show", "-p", 64)["contexts"]
        self.assertEqual([c["num_ranks"] for c in of_64], [64, 64])
        self.assertEqual(self.knowledge_json("show", "--collective", "barrier")["contexts"], [])
        self.assertIn("No knowledge", self.knowledge("show", "--collective", "barrier").stdout)

    def test_the_same_file_counts_once(self):
        self.add()
        again = self.add("copy.json")
        self.assertEqual((again["added"], again["present"]), (0, 1))
        self.assertEqual(self.knowledge_json("show")["contexts"][0]["runs"], 1)

    def test_stores_and_exports_go_from_one_to_another(self):
        self.add()
        self.add("later.json", written_at="2026-03-01T12:00:00Z")
        shown = [{k: v for k, v in c.items() if k != "place"}
                 for c in self.knowledge_json("show")["contexts"]]
        exported = self.path("all.json")
        self.knowledge("export", "-o", exported)
        first, self.store = self.store, self.path("second")
        for sources in ([first], [exported], [exported, first, first]):
            self.knowledge("merge", *sources)
            self.assertEqual(shown, [{k: v for k, v in c.items() if k != "place"}
                                     for c in self.knowledge_json("show")["contexts"]])
        self.store = self.path("third")
        self.assertEqual(self.knowledge_json("import", exported)["added"], 2)

    def run_with(self, number, library, native_s):
        of_run = dump(f"2026-02-{10 + number}T12:00:00Z", machine={**MACHINE, "mpi_library": library})
        for context in of_run["contexts"]:
            factor = native_s / 2e-3 if context["first_bytes"] == 1024 else 1
            for one in context["arms"]:
                one["mean_s"] *= factor * (1 + 0.01 * (number % 3))
        return self.knowledge_json("import", self.write(f"run{number}.json", json.dumps(of_run)))

    def test_an_upgrade_is_compared(self):
        for number in range(3):
            self.run_with(number, "Some MPI 1.0", 2e-3)
        self.assertEqual(self.knowledge_json("compare")["machines"], [])
        self.assertIn("No machine", self.knowledge("compare").stdout)
        for number in range(3, 5):
            self.run_with(number, "Some MPI 2.0", 3e-3)
        early, = self.knowledge_json("compare")["machines"]
        self.assertEqual((early["cells"], early["not_compared"]), ([], 4))
        self.run_with(5, "Some MPI 2.0", 3e-3)
        found, = self.knowledge_json("compare")["machines"]
        self.assertEqual((found["before"]["mpi_library"], found["now"]["mpi_library"], found["runs_before"],
                          found["runs_now"]), ("Some MPI 1.0", "Some MPI 2.0", 3, 3))
        shown = {(c["bytes"], c["calls"]): c["ratio"] for c in found["cells"] if c["shown"]}
        self.assertEqual(set(shown), {(1024, "native"), (1024, "tuned")})
        for ratio in shown.values():
            self.assertAlmostEqual(ratio, 1.5, 2)
        text = self.knowledge("compare").stdout
        self.assertIn("MPI library Some MPI 2.0 instead of Some MPI 1.0", text)
        self.assertIn("2 kinds of calls: no change shown", text)
        self.assertEqual(text.count("1.50"), 2)
        self.assertIn("64KiB", self.knowledge("compare", "--all").stdout)
        self.assertEqual(self.knowledge_json("compare", "-p", "7")["machines"][0]["cells"], [])

    def test_prune_by_age(self):
        self.add(written_at="2001-01-01T00:00:00Z", first_bytes=(1, 2))
        self.add("later.json", written_at="2100-01-01T00:00:00Z", first_bytes=(2, 3))
        self.assertEqual(self.knowledge_json("prune")["dropped"], 0)
        pruned = self.knowledge_json("prune", "--older-than", 100)
        self.assertEqual((pruned["dropped"], pruned["contexts"]), (1, 2))
        self.assertEqual(sorted(c["bytes"] for c in self.knowledge_json("show")["contexts"]),
                         [2, 3])

    def test_no_names_of_hosts_users_or_programs(self):
        self.add()
        exported = self.knowledge("export", "-o", "-").stdout
        stored = b"".join(open(path, "rb").read() for path in self.files())
        for name in os.uname().nodename, PROGRAM, self.folder:
            self.assertNotIn(name, exported)
            self.assertNotIn(name.encode(), stored)

    def test_a_damaged_store(self):
        self.add()
        path, = self.files()
        with open(path, "rb") as file:
            intact = file.read()
        damaged = intact.replace(b"binomial", b"Binomial", 1)
        with open(path, "wb") as file:
            file.write(damaged)
        for verb in ("list",), ("show",), ("prune",), ("export", "-o", self.path("e.json")):
            done = self.knowledge(*verb)
            self.assertEqual(len(done.stderr.strip().split("\n")), 1, done.stderr)
            self.assertIn("corrupt", done.stderr)
            self.assertIn(path, done.stderr)
        self.assertEqual(len(self.knowledge_json("list")["problems"]), 1)
        self.add("later.json", written_at="2026-03-01T12:00:00Z")
        with open(path, "rb") as file:
            self.assertEqual(file.read(), damaged)
        self.assertEqual(self.knowledge_json("show")["contexts"][0]["runs"], 1)

    def refused(self, *arguments, **options):
        return self.check_refused("knowledge", *arguments, "--store", self.store, **options)

    def test_files_that_are_none(self):
        bad = [self.path("missing"), self.write("empty", ""), self.write("text", "hello"),
               self.write("other.json", '{"format": "railpass profile", "version": 1}'),
               self.write("list.json", "[]"),
               self.write("newer.json", '{"format": "railpass knowledge", "version": 2}'),
               self.write("date.json", json.dumps(dump(written_at="yesterday"))),
               self.write("cut.json", json.dumps(dump())[:-9])]
        good = self.write("good.json", json.dumps(dump()))
        for path in bad:
            for verb in "import", "merge":
                self.refused(verb, good, path, status=1)
                self.assertEqual(self.files(), [])
        self.refused("merge", self.folder, status=1, says="not a store of knowledge")

    def test_wrong_use(self):
        self.check_refused("knowledge")
        self.check_refused("knowledge", "burn")
        self.refused("show", "--collective", "wave", says="broadcast")
        self.refused("show", "-p", 0)
        self.refused("prune", "--older-than", "-1")
        self.refused("prune", "--older-than", "old")
        self.refused("prune", "--most", 3, says="--most")
        self.refused("prune", "--most", "9MiB", says="--most")
        self.refused("import")
        self.refused("export")

    def test_where_it_is(self):
        file = self.write("dump.json", json.dumps(dump()))
        home = self.path("home")
        os.mkdir(home)
        cases = [({"HOME": home, "XDG_STATE_HOME": ""}, "home/.local/state/railpass"),
                 ({"HOME": home, "XDG_STATE_HOME": self.path("state")}, "state/railpass"),
                 ({"RAILPASS_KNOWLEDGE": self.path("a") + ":" + self.path("b")}, "a")]
        for environment, place in cases:
            self.run_railpass("knowledge", "import", file, environment=environment)
            self.assertTrue(os.path.isdir(self.path(place) + "/machines"), place)
        # The second one is read only.
        found = self.json_of("knowledge", "list", environment={
            "RAILPASS_KNOWLEDGE": self.path("none") + ":" + self.path("a")})
        self.assertEqual([m["place"] for m in found["machines"]], [self.path("a")])
        self.check_refused("knowledge", "list", status=1, says="HOME",
                           environment={"HOME": "", "XDG_STATE_HOME": ""})

    @unittest.skipIf(os.geteuid() == 0 and not shutil.which("setpriv"), "root may write anywhere")
    def test_a_place_that_cannot_be_written(self):
        self.add()
        for folder, _, names in os.walk(self.store):
            os.chmod(folder, stat.S_IRUSR | stat.S_IXUSR | stat.S_IRGRP | stat.S_IXGRP
                     | stat.S_IROTH | stat.S_IXOTH)
            for name in names:
                os.chmod(os.path.join(folder, name), 0o444)
        os.chmod(self.folder, 0o755)
        self.addCleanup(subprocess.run, ["chmod", "-R", "u+w", self.folder], check=True)
        later = self.write("later.json", json.dumps(dump("2026-03-01T12:00:00Z")))
        nobody = ["setpriv", "--reuid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        if self.start([*nobody, "test", "-x", PROGRAM]).returncode != 0:
            self.skipTest("only root may look into the build's folder")

        def run(*arguments):
            return self.start([*nobody, PROGRAM, "knowledge", *arguments, "--store", self.store])

        before = self.files()
        for verb in ("import", later), ("prune",):
            done = run(*verb)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("denied", done.stderr)
            self.assertEqual(len(done.stderr.strip().split("\n")), 1)
        self.assertIn("binomial", run("show").stdout)
        self.assertEqual(self.files(), before)


class Fit(ProgramTest):
    SAMPLES = {"format": "railpass samples", "version": 1, "machine_id": MACHINE,
               "sampled_at": "2026-01-31T12:00:00Z",
               "links": [{"link": link, "bytes": n, "one_way_s": 2e-5 + n / 1e8}
                         for n in (1, 1024, 65536, 1 << 20)
                         for link in ("same_node", "across_nodes")],
               "streams": [], "eager_limits_bytes": {"across_nodes": 65536}, "copies": [],
               "reductions": [], "collectives": []}

    def test_a_fit_takes_what_runs_learnt_on_this_machine(self):
        store, samples = self.path("store"), self.write("s.json", json.dumps(self.SAMPLES))
        other = dict(MACHINE, cpu_model="Other")
        unknown = dump(written_at="2026-02-01T00:00:00Z", first_bytes=(512,))
        unknown["contexts"][0]["arms"][2]["arm"] = "of_tomorrow"
        files = [self.write("a.json", json.dumps(dump())),
                 self.write("b.json", json.dumps(unknown)),
                 self.write("c.json", json.dumps(dump(machine=other, first_bytes=(4096,))))]
        self.run_railpass("knowledge", "import", *files, "--store", store)
        alone = self.json_of("fit", samples, "-o", self.path("p.json"))
        both = self.json_of("fit", samples, "--knowledge", store, "-o", self.path("p.json"))
        self.assertEqual(alone["corrections"], [])
        points = {c["algorithm"]: len(c["points"]) for c in both["corrections"]}
        self.assertEqual(points, {"binomial": 3, "linear": 2})
        self.assertEqual(sorted(t["bytes"] for t in both["measured"]), [512, 1024, 65536])
        self.assertEqual(both["machine_id"], MACHINE)

    def test_nothing_to_fit(self):
        self.check_refused("fit", "-o", self.path("p.json"), says="--knowledge")
        self.check_refused("fit", "--knowledge", self.path("none"), "-o", self.path("p.json"),
                           status=1, says="no knowledge")


if __name__ == "__main__":
    main()

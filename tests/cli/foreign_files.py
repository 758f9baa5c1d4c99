# SPDX-License-Identifier: BSL-1.0
"""Files of other people: what would make a verb wait, compute or take memory for ever is left out
with a sentence, and no name in a file commands the terminal."""
import json
import os
import sqlite3
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from program import PROGRAM, ProgramTest, main  # noqa: E402

BELL = "\x1b]0;owned\x07\u009b31m"  # sets the title of a terminal, rings, and is red from here on
SHOWN = "\\x1b]0;owned\\x07\\xc2\\x9b31m"
SPIN = ("CREATE VIEW head AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n)"
        " SELECT 'store' AS what, x AS record FROM n WHERE x<0")
MEMORY = "CREATE VIEW head AS SELECT 'store' AS what, hex(zeroblob(450000000)) AS record"


def dump(name=""):
    arm = {"arm": "native" + name, "calls": 100, "samples": 50, "time_s": 0.2, "mean_s": 2e-3,
           "spread": 0.1, "probability": 0.5, "exploration_cost_s": 0}
    return {"format": "railpass statistics", "version": 1, "merges": 1, "merge_cost_s": 0,
            "machine_id": {"num_hosts": 1, "cores_per_host": 8, "cpu_model": "Imaginary" + name,
                           "mpi_library": "Some MPI" + name},
            "written_at": "2026-01-31T12:00:00Z", "contexts": [
                {"communicator": "MPI_COMM_WORLD" + name, "collective": "broadcast", "num_ranks": 32,
                 "ranks_per_node": 8, "from_bytes": 1024, "to_bytes": 2047, "first_bytes": 1024,
                 "operation": "none" + name, "policy": "thompson" + name,
                 "current_arm": "native" + name, "reason": "it is the fastest" + name, "calls": 300,
                 "time_s": 1, "exploration_cost_s": 0, "arms": [arm]}]}


class Stores(ProgramTest):
    """A store of somebody else's, to which each of these is added."""

    def setUp(self):
        super().setUp()
        self.foreign = self.path("foreign")
        self.run_railpass("knowledge", "import", self.write("dump.json", json.dumps(dump())),
                          "--store", self.foreign)
        machines = os.path.join(self.foreign, "machines")
        self.machine = os.path.join(machines, *os.listdir(machines))

    def check_left_out(self, name, verbs=("list", "show", "analyse")):
        for verb in verbs:
            with self.subTest(verb=verb):
                done = self.run_railpass("knowledge", verb, "--store", self.foreign)
                self.assertIn(name + ": ", done.stderr)
                self.assertIn("Imaginary", done.stdout)
        done = self.run_railpass("knowledge", "merge", self.foreign, "--store",
                                 self.path("with " + name))
        self.assertIn(name + ": ", done.stderr)
        self.assertIn("1 runs were added", done.stdout)
        done = self.run_railpass("knowledge", "prune", "--store", self.foreign)
        self.assertIn(name + ": ", done.stderr)
        self.assertTrue(os.path.exists(os.path.join(self.machine, name)))

    def test_databases_that_are_programs(self):
        for number, sql in ((7, SPIN), (70, MEMORY)):
            database = sqlite3.connect(os.path.join(self.machine, f"{number}.db"))
            database.execute(sql)
            database.commit()
            database.close()
            self.check_left_out(f"{number}.db")

    def test_pipes(self):
        for name in ("7.db", "20260131T120000Z-0123456789abcdef.run",
                     "20260131T120000Z-0123456789abcdef.running"):
            path = os.path.join(self.machine, name)
            os.mkfifo(path)
            self.check_left_out(name, verbs=("list",))
            os.unlink(path)

    def test_names_command_no_terminal(self):
        self.run_railpass("knowledge", "import",
                          self.write("bell.json", json.dumps(dump(BELL))), "--store", self.foreign)
        for verb in ("list", "show", "analyse"):
            with self.subTest(verb=verb):
                self.check_shown(self.run_railpass("knowledge", verb, "--store", self.foreign))

    def check_shown(self, done):
        self.assertIn(SHOWN, done.stdout + done.stderr)
        for character in "\x1b\x07\u009b":
            self.assertNotIn(character, done.stdout + done.stderr)


class Files(ProgramTest):
    def test_names_in_statistics_command_no_terminal(self):
        file = self.write("bell.json", json.dumps(dump(BELL)))
        for options in ((), ("--markdown",), ("--csv",)):
            done = self.run_railpass("stats", file, *options)
            self.assertIn(SHOWN, done.stdout)
            self.assertNotIn("\x1b", done.stdout)

    def test_names_of_files_command_no_terminal(self):
        for verb in (("stats", "nothing" + BELL), ("knowledge", "import", "nothing" + BELL)):
            done = self.start([PROGRAM, *verb])
            self.assertEqual(done.returncode, 1)
            self.assertIn(SHOWN, done.stderr)
            self.assertNotIn("\x1b", done.stderr)

    def verbs(self, file):
        yield "stats", file
        yield "fit", file, "-o", self.path("profile.json")
        yield "knowledge", "import", file, "--store", self.path("store")
        yield "predict", "--collective", "broadcast", "-p", "4", "--profile", file
        yield "report", file, "-o", self.path("page.html")

    def test_json_that_is_nested_too_deeply(self):
        for text in ("[" * (4 << 20), '{"a":' * (1 << 20)):
            for verb in self.verbs(self.write("deep.json", text)):
                with self.subTest(verb=verb):
                    self.check_refused(*verb, status=1, says="deep.json")

    def test_what_is_no_regular_file(self):
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        for file in (pipe, "/dev/zero", self.folder):
            for verb in self.verbs(file):
                with self.subTest(verb=verb):
                    self.check_refused(*verb, status=1, says=(file, "regular file"))


if __name__ == "__main__":
    main()

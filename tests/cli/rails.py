# SPDX-License-Identifier: BSL-1.0
"""railpass rails: what it finds on one host, what it measures there, and what it keeps."""
import contextlib
import json
import os
import signal
import subprocess
import time

from support.program import MPIEXEC, PROGRAM, ProgramTest, main

TWO = ("rails", "--rails", "127.0.0.2,127.0.0.3", "--budget", "200ms", "--bytes", "1KiB,16MiB")


class Rails(ProgramTest):
    def measured(self, ranks=2, **options):
        return json.loads(self.run_ranks(ranks, *TWO, "--json", "-", **options).stdout)

    def test_nothing_to_use_on_one_host(self):
        said = self.run_ranks(2, "rails").stdout
        self.assertIn("leads to this host only", said)
        self.assertIn("No rails", said)
        alone = self.json_of("rails")
        self.assertEqual(alone["rails"], [])
        self.assertTrue(all(not i["used"] and i["why"] for i in alone["interfaces"]))
        self.assertIn("127.0.0.1", {i["address"] for i in alone["interfaces"]})

    def test_two_rails_in_one_host(self):
        said = self.measured()
        self.assertEqual(len(said["rails"]), 2)
        (link,) = said["links"]
        self.assertTrue(link["same_host"])
        self.assertEqual([j["rails"] for j in link["joint"]], [[0], [1], [0, 1]])
        for rail in link["rails"]:
            self.assertGreater(rail["bytes_per_s"], 0)
            self.assertLessEqual(rail["copy_bytes"], rail["eager_bytes"])
            self.assertLessEqual(rail["eager_bytes"], 65536)
        small, large = link["plans"]
        self.assertEqual(sum(small["bytes_by_rail"]), 1024)
        self.assertEqual(sum(large["bytes_by_rail"]), 16 << 20)
        self.assertFalse(large["eager"])
        (samples,) = said["samples"]
        self.assertEqual(len(samples["marks"]), 4)
        self.assertGreaterEqual(len(samples["rails"][0]["pieces"]), 2)
        text = self.run_ranks(3, *TWO).stdout
        for words in ("Ranks on one host", "asked first", "of the sum", "plan for", "measured now"):
            self.assertIn(words, text)

    def test_what_was_measured_is_kept(self):
        kept = self.path("rails.json")
        log = self.path("log")
        environment = {"RAILPASS_RAILS_PROFILE": kept, "RAILPASS_LOG": log}
        first = self.measured(environment=environment)
        self.assertEqual(first["source"], "measured now")
        second = self.measured(environment=environment)
        self.assertEqual(second["source"], "read from " + kept)
        self.assertEqual(second["links"], first["links"])
        self.assertFalse(os.path.exists(log))
        # Of other rails, cut short, of another version: said, and measured anew.
        with open(kept, encoding="utf-8") as file:
            text = file.read()
        for damaged, why in ((text.replace("127.0.0.3", "127.0.0.4"), "has become"),
                             (text[:len(text) // 2], "cut short"),
                             (text.replace('"pieces"', '"parts"'), "parts"),
                             (text.replace('"railpass_version": "', '"railpass_version": "9'),
                              "written by railpass 9")):
            self.assertNotEqual(damaged, text)
            self.write("rails.json", damaged)
            again = self.measured(environment=environment)
            self.assertEqual(again["source"], "measured now")
            with open(log, encoding="utf-8") as file:
                said = file.read()
            self.assertIn("the rails are measured again: " + kept, said)
            self.assertIn(why, said)
            os.remove(log)
            with open(kept, encoding="utf-8") as file:
                self.assertIn("127.0.0.3", file.read())
        # A file that cannot be written costs nothing but a record.
        nowhere = {"RAILPASS_RAILS_PROFILE": "/nowhere/rails.json", "RAILPASS_LOG": log}
        self.assertEqual(self.measured(environment=nowhere)["source"], "measured now")
        with open(log, encoding="utf-8") as file:
            self.assertIn("is not kept: /nowhere/rails.json", file.read())

    def test_statistics_of_a_run(self):
        dump = self.path("dump.json")
        self.run_ranks(2, "bench", "--bytes", "1MiB", "--collectives", "broadcast", "--budget", "1s",
                       "--arms", "native,binomial", environment={
                           "RAILPASS_RAILS": "127.0.0.2,127.0.0.3", "RAILPASS_STATS": dump})
        with open(dump, encoding="utf-8") as file:
            rails = json.load(file)["rails"]
        self.assertGreaterEqual(len(rails), 2)
        self.assertGreater(sum(r["sent_bytes"] for r in rails), 1 << 20)
        for r in rails:
            self.assertIn("lo (127.0.0.", r["rail"])
            self.assertLessEqual(r["share"], 1)
        said = self.run_railpass("stats", dump).stdout
        self.assertIn("Traffic of rank 0 over rails", said)
        self.assertIn("lo (127.0.0.2)", said)

    def test_a_program_that_runs(self):
        mark = f"railpass-rails-test-{os.getpid()}."
        def boards():
            said, mine = self.json_of("rails")["running"], self.running(mark)
            return [b for b in said if any(r["pid"] in mine for r in b["rails"])]

        running = subprocess.Popen(
            [MPIEXEC, "-n", "2", PROGRAM, "bench", "--collectives",
             "all_to_all,all_gather,all_reduce", "--bytes", "1MiB,4MiB,16MiB"],
            env=self.settings({"RAILPASS_RAILS": "127.0.0.2,127.0.0.3", "RAILS_TEST": mark}),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(running.wait)
        self.addCleanup(running.terminate)
        for _ in range(300):
            mine = [b for b in boards()
                    if any(r["rank"] == 0 and r["sent_bytes"] > 1 << 20 for r in b["rails"])]
            if mine:
                break
            self.assertIsNone(running.poll(), "the program has ended")
            time.sleep(0.1)
        (board,) = mine
        self.assertEqual(board["num_ranks"], 2)
        self.assertEqual([r["rank"] for r in board["rails"]], [0, 0, 1, 1])
        processes = {r["pid"] for r in board["rails"]}
        self.assertEqual(len(processes), 2)
        self.assertAlmostEqual(sum(r["share"] for r in board["rails"][:2]), 1)
        for r in board["rails"]:
            self.assertEqual(r["program"], "railpass")
            self.assertIn("lo (127.0.0.", r["rail"])
            self.assertGreaterEqual(r["backlog_bytes"], 0)
            self.assertLess(r["posted_before_s"], 30)
        text = self.run_railpass("rails").stdout
        for words in ("Running: railpass, 2 of 2 ranks on this host", "lo (127.0.0.3)", "backlog",
                      "prediction off by", *map(str, processes)):
            self.assertIn(words, text)
        for process in processes:
            with contextlib.suppress(ProcessLookupError):  # the launcher ends the other one
                os.kill(process, signal.SIGKILL)
        for _ in range(100):  # until they have ended
            said = self.json_of("rails")["running"]
            if not processes & {r["pid"] for b in said for r in b["rails"]}:
                return
            time.sleep(0.1)
        self.fail("what was killed is still shown")

    def test_files_that_are_no_boards(self):
        path = f"/dev/shm/railpass.{os.geteuid()}.test_{os.getpid()}"
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write("\x1b[2Jsomething else, longer than what a board begins with")
        except OSError as why:
            self.skipTest(str(why))
        self.addCleanup(os.remove, path)
        os.chmod(path, 0o600)
        self.assertIn(f"Skipped {path}: not a file of rail loads", self.run_railpass("rails").stdout)
        self.assertIn(path, "".join(self.json_of("rails")["skipped"]))

    def test_wrong_use(self):
        self.check_ranks_refused(2, "rails", "--rails", "nosuch0", status=1, says="nosuch0")
        self.check_refused("rails", "--bytes", "much", says="--bytes")
        self.check_refused("rails", "--budget", "0s", says="--budget")
        self.check_refused("rails", "--json", "/nowhere/x.json", status=1, says="/nowhere/x.json")


if __name__ == "__main__":
    main()

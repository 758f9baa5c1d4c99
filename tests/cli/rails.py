# SPDX-License-Identifier: BSL-1.0
"""railpass rails: what it finds on one host, what it measures there, and what it keeps."""
import json
import os

from support.program import ProgramTest, main

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
        for damaged, why in ((text.replace("127.0.0.3", "127.0.0.4"), "a rail was"),
                             (text[:len(text) // 2], "cut short"),
                             (text.replace('"pieces"', '"parts"'), "parts"),
                             (text.replace('"railpass_version": "', '"railpass_version": "9'),
                              "it is of railpass 9")):
            self.assertNotEqual(damaged, text)
            self.write("rails.json", damaged)
            again = self.measured(environment=environment)
            self.assertEqual(again["source"], "measured now")
            with open(log, encoding="utf-8") as file:
                said = file.read()
            self.assertIn("the rails are measured anew: " + kept, said)
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
        self.assertIn("What rank 0 sent over rails", said)
        self.assertIn("lo (127.0.0.2)", said)

    def test_wrong_use(self):
        self.check_ranks_refused(2, "rails", "--rails", "nosuch0", status=1, says="nosuch0")
        self.check_refused("rails", "--bytes", "much", says="--bytes")
        self.check_refused("rails", "--budget", "0s", says="--budget")
        self.check_refused("rails", "--json", "/nowhere/x.json", status=1, says="/nowhere/x.json")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSL-1.0
"""The verbs that need neither MPI nor files: algorithms, verify, settings, schedule, predict."""
import csv
import json
import os
import pty
import subprocess
import sys
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from program import MPIEXEC, ProgramTest, main  # noqa: E402

VERBS = ["sample", "fit", "predict", "bench", "stats", "algorithms", "verify", "settings",
         "schedule", "doctor"]


class Program(ProgramTest):
    def test_help_lists_all_verbs(self):
        text = self.run_railpass("--help").stdout
        for verb in ["run", *VERBS]:
            self.assertRegex(text, rf"(?m)^ *{verb} ")

    def test_every_verb_has_help_with_an_example(self):
        for verb in VERBS:
            with self.subTest(verb=verb):
                text = self.run_railpass(verb, "--help").stdout
                self.assertIn("Examples:", text)
                self.assertIn(f"railpass {verb}", text.split("Examples:")[1])
                self.assertIn("--json", text)

    def test_help_is_at_most_80_columns_wide(self):
        for verb in ["run", "compare", "demo", "tune", "rails", "timeline", "report", *VERBS]:
            for line in self.run_railpass(verb, "--help").stdout.splitlines():
                self.assertLessEqual(len(line), 80, line)

    def test_errors_are_in_the_terms_of_users(self):
        verify = "verify", "--collective", "broadcast", "--ranks"
        for arguments, says in {(*verify, "four"): "--ranks: 'four' is not a number ",
                                (*verify, "1.5"): "--ranks: '1.5' is not a whole number ",
                                (*verify, "0"): "--ranks: 0 is not in the range 1 to 4096 ",
                                verify: "--ranks: the value is missing ",
                                ("run", "-n", "0x2", "x"): "--ranks: '0x2' is not a number ",
                                ("run", "-n", 10 ** 20, "x"): f"--ranks: '{10 ** 20}' is out of range ",
                                ("tune", "x", "--runs", -5): "--runs: '-5' is negative ",
                                ("tune", "x", "--confidence", "nan"): "--confidence: 'nan' is not finite ",
                                ("knowledge", "prune", "--older-than", "0x10"):
                                "--older-than: '0x10' is not a number ",
                                ("run", "-n", "four", "x"): "--ranks: 'four' is not a number ",
                                ("algorithms", "foo"): "'foo' is not expected here ",
                                ("algorithms", "--algorithm", "telepathy"): "a name with 'telepathy'",
                                ("algorithms", "--collective", "scan", "--needs", "luck"):
                                "no algorithm of scan has a need with 'luck'",
                                ("bench", "--clock", "sun"): "--clock: 'sun': expected one of barrier,",
                                ("stats",): "the argument 'dump' is missing",
                                ("knowledge",): "expected a subcommand: list, show, ",
                                ("knowledge", "shwo"): "there is no subcommand 'shwo'",
                                ("knowledge", "import"): "(railpass knowledge import --help says how)",
                                ("schedule", "broadcast:foo", "-p", 2): "schedule: arm 'foo' of broadcast: "
                                }.items():
            self.check_refused(*arguments, says=says)
        for text in "{}", "[1]":
            self.check_refused("stats", self.write("other.json", text), status=1,
                               says="other.json: not a railpass file")

    def test_version(self):
        self.assertRegex(self.run_railpass("--version").stdout, r"^railpass \d+\.\d+\.\d+\n$")

    def test_wrong_use(self):
        self.check_refused(says="expected a verb")
        self.check_refused("frobnicate", says="'frobnicate'")
        for verb in VERBS:
            with self.subTest(verb=verb):
                self.check_refused(verb, "--no-such-option", says="no-such-option"
                                   if verb not in ("fit", "predict", "stats", "verify", "schedule")
                                   else ())

    def test_numbers_are_decimal(self):
        for ranks in "8", "08", "008":
            self.assertEqual(self.json_of("predict", "--collective", "barrier", "-p", ranks)["num_ranks"], 8)

    def test_text_that_is_not_utf_8_leaves_json_whole(self):
        found = self.json_of("settings", environment={"RAILPASS_STATS": os.fsdecode(b"caf\xe9")})
        self.assertIn("caf\ufffd", [one["value"] for one in found["settings"]])

    def test_results_that_cannot_be_written(self):
        result = self.run_railpass("algorithms", "--json", self.path("no/such/x.json"), status=1)
        self.assertIn("no/such", result.stderr)


class Algorithms(ProgramTest):
    def test_json(self):
        found = self.json_of("algorithms")
        self.assertEqual({frozenset(a) for a in found},
                         {frozenset(["collective", "name", "parameters", "needs", "scratch",
                                    "source"])})
        names = {(a["collective"], a["name"]) for a in found}
        self.assertEqual(len(names), len(found))
        for name in [("broadcast", "native"), ("broadcast", "binomial"), ("broadcast", "chain"),
                     ("all_reduce", "native"), ("all_reduce", "ring")]:
            self.assertIn(name, names)
        chain = next(a for a in found if a["name"] == "chain")
        self.assertIn(8192, chain["parameters"]["segment_bytes"])
        self.assertGreater(len(chain["parameters"]["fan_out"]), 1)
        ring = next(a for a in found if a["name"] == "ring")
        self.assertTrue(any("commutative" in need for need in ring["needs"]))
        self.assertIn("doi:", ring["source"])

    def test_one_collective(self):
        found = self.json_of("algorithms", "--collective", "all_reduce")
        self.assertEqual({a["collective"] for a in found}, {"all_reduce"})
        self.check_refused("algorithms", "--collective", "gossip", says=("gossip", "broadcast"))

    def test_a_summary_comes_first_and_filters_choose(self):
        listed = self.json_of("algorithms")
        said = self.run_railpass("algorithms").stdout.splitlines()
        self.assertEqual(said[0], f"{len(listed)} algorithms of "
                                  f"{len({a['collective'] for a in listed})} collectives")
        self.assertLess(len(said), 30)
        rings = [a for a in listed if "ring" in a["name"]
                 and any("commutative" in need for need in a["needs"])]
        chosen = "--algorithm", "ring", "--needs", "commutative"
        self.assertEqual(self.json_of("algorithms", *chosen), rings)
        said = self.run_railpass("algorithms", *chosen).stdout.splitlines()
        self.assertEqual(said[0], f"{len(rings)} algorithms")
        self.assertEqual(len([line for line in said if "ring" in line]), len(rings))

    def test_tables(self):
        text = self.run_railpass("algorithms", "--markdown").stdout
        rows = [line for line in text.split("\n") if line.startswith("|")]
        self.assertEqual(len({line.count(" |") for line in rows[2:]}), 1)
        self.assertGreater(len(rows), 100)
        self.assertIn("| broadcast | binomial |", text)

    def test_json_file(self):
        file = self.path("list.json")
        self.assertIn("binomial", self.run_railpass("algorithms", "--all", "--json", file).stdout)
        with open(file, encoding="utf-8") as stream:
            self.assertEqual(json.load(stream), self.json_of("algorithms"))


class Tables(ProgramTest):
    def on_a_terminal(self, *arguments, statuses=(0,), **environment):
        """The lines that the program writes to a terminal."""
        ours, its = pty.openpty()
        settings = {**os.environ, "TERM": "xterm", "NO_COLOR": "1", **environment}
        with subprocess.Popen([os.environ["RAILPASS"], *map(str, arguments)], stdout=its,
                              stdin=subprocess.DEVNULL, env=settings) as process:
            os.close(its)
            said = b""
            while True:
                try:
                    more = os.read(ours, 65536)
                except OSError:  # the terminal's way to say that nobody writes
                    break
                if not more:
                    break
                said += more
        os.close(ours)
        self.assertIn(process.returncode, statuses)
        return said.decode().splitlines()

    def test_80_columns_on_a_terminal(self):
        for arguments in (("settings",), ("predict", "--collective", "broadcast", "-p", 8),
                          ("schedule", "broadcast:binomial", "-p", 8)):
            with self.subTest(arguments=arguments):
                self.assertLessEqual(max(map(len, self.on_a_terminal(*arguments))), 80)
        found = self.on_a_terminal("doctor", "--profile", self.path("no/such/profile.json"), statuses=(1,))
        self.assertLessEqual(max(map(len, found)), 80)
        self.assertIn("such/profile.json: cannot be opened", " ".join("".join(found).split()))
        self.assertGreater(max(map(len, self.on_a_terminal("settings", "--wide"))), 80)
        self.assertGreater(max(map(len, self.run_railpass("settings").stdout.split("\n"))), 80)

    def test_stats_shows_the_arms_that_matter(self):
        example = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fuzz/statistics/example.json")
        with open(example, encoding="utf-8") as file:
            dump = json.load(file)
        context = dump["contexts"][0]
        arm = next(a for a in context["arms"] if a["arm"] == context["current_arm"])
        context["arms"] = [{**arm, "arm": f"ring+segment_bytes={k}", "calls": k} for k in range(30)]
        context["arms"] += [{**arm, "calls": 1}, {**arm, "arm": "native", "calls": 0}]
        dump["contexts"] = [context]
        file = self.write("dump.json", json.dumps(dump))
        said = self.on_a_terminal("stats", file)
        self.assertLessEqual(max(map(len, said)), 80)
        for name in "* " + context["current_arm"], "  native", "  ring+segment_bytes=29", "  ring+segment_bytes=24":
            self.assertTrue(any(line.startswith(name + " ") for line in said), (name, said))
        self.assertFalse(any("=23" in line for line in said), said)
        self.assertIn("24 more arms are not shown (--all shows them)", said)
        said = "\n".join(self.on_a_terminal("stats", "--all", file))
        for k in range(30):
            self.assertIn(f"ring+segment_bytes={k} ", said)

    def test_stats_shows_the_contexts_that_matter(self):
        example = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fuzz/statistics/example.json")
        with open(example, encoding="utf-8") as file:
            dump = json.load(file)
        context = {**dump["contexts"][0], "reason": ""}
        dump["contexts"] = [{**context, "communicator": f"g{k}", "time_s": k / 1000} for k in range(30)]
        dump["contexts"].append({**context, "communicator": "w", "time_s": 10.0})
        file = self.write("dump.json", json.dumps(dump))

        def shown(*options):
            return [line.split("communicator ")[1] for line in self.on_a_terminal("stats", file, *options)
                    if "communicator " in line and line.startswith(context["collective"])]

        most_first = ["w"] + [f"g{k}" for k in reversed(range(30))]
        self.assertEqual(shown("--all"), most_first)
        self.assertEqual(shown(), most_first[:12])
        self.assertIn("19 more contexts with 1.6 % of the time: --all shows all", self.on_a_terminal("stats", file))
        dump["contexts"][-1]["time_s"] = 100.0  # the other 30 took 0.4 % of the time
        self.write("dump.json", json.dumps(dump))
        self.assertEqual(shown(), most_first[:1])

    def test_colours_on_a_terminal_that_has_them(self):
        arguments = "compare", "--repetitions", 1, "--", "true"
        coloured = self.on_a_terminal(*arguments, NO_COLOR="")
        self.assertTrue(coloured[1].startswith("\033[1m"), coloured)  # titles of a table
        self.assertTrue(coloured[1].endswith("\033[0m"), coloured)
        for plain in (self.on_a_terminal(*arguments), self.on_a_terminal(*arguments, NO_COLOR="",
                                                                         TERM="dumb"),
                      self.run_railpass(*arguments, environment={"NO_COLOR": ""}).stdout,
                      # Open MPI gives ranks terminals of their own.
                      self.start([MPIEXEC, "-n", "1", os.environ["RAILPASS"], "doctor"],
                                 {"NO_COLOR": "", "TERM": "xterm"}).stdout):
            self.assertNotIn("\033", "".join(plain))

    def test_csv_is_all_there_is(self):
        for arguments in (("settings",), ("settings", "--policies"), ("algorithms",),
                          ("verify", "--collective", "broadcast", "-p", 4),
                          ("schedule", "broadcast:binomial", "-p", 4),
                          ("predict", "--collective", "broadcast", "-p", 4, "--bytes", "8,64KiB")):
            with self.subTest(arguments=arguments):
                said = self.run_railpass(*arguments, "--csv").stdout
                for part in said.strip().split("\n\n"):
                    rows = list(csv.reader(part.split("\n")))
                    self.assertGreater(len(rows), 1)
                    self.assertEqual(len({len(row) for row in rows}), 1, part)
        rows = list(csv.DictReader(self.run_railpass(
            "schedule", "broadcast:binomial", "-p", 4, "--bytes", "1MiB", "--csv").stdout.split("\n")))
        self.assertEqual(rows[0]["sends"], str(2 << 20))
        self.assertLess(float(rows[0]["done after"]), 10)
        self.assertLessEqual(float(rows[0]["sending"]), 1)
        self.check_refused("settings", "--csv", "--json", "-", says="--csv")


def needs(algorithm, groups):
    return any(need.startswith(f"several {groups}") for need in algorithm["needs"])


class Verify(ProgramTest):
    def test_a_summary_comes_first_and_filters_choose(self):
        said = self.run_railpass("verify", "--collective", "barrier", "-p", 33).stdout.split("\n")
        listed = self.json_of("algorithms", "--collective", "barrier")
        self.assertRegex(said[0], r"^\d+ variants of barrier for 33 ranks, root 0: \d+ steps checked, "
                                  "0 variants wrong$")
        self.assertEqual([line.split()[0] for line in said[3:said.index("", 3)]],
                         [a["name"] for a in listed
                          if a["name"] not in ("native", "shared_flat")
                          and not needs(a, "nodes") and not needs(a, "caches")])
        missing = [a["name"] for a in listed if a["name"] == "shared_flat" or needs(a, "nodes") or needs(a, "caches")]
        self.assertEqual(said[-2], f"not for these 33 ranks: {', '.join(missing)} "
                                   "(`railpass algorithms` says what they need)")
        found = self.json_of("verify", "--collective", "barrier", "-p", 33)
        self.assertGreater(len(found), len(said) - 6)
        every = self.run_railpass("verify", "--collective", "barrier", "-p", 33, "--all").stdout
        self.assertEqual(len(every.strip().split("\n")), len(found) + 5)
        chosen = "verify", "--collective", "barrier", "-p", 33, "--algorithm", "dissemination"
        self.assertEqual({a["algorithm"] for a in self.json_of(*chosen)},
                         {a["algorithm"] for a in found if "dissemination" in a["algorithm"]})
        self.check_refused(*chosen[:-1], "no_such", says="--algorithm 'no_such'")

    def test_broadcast(self):
        found = self.json_of("verify", "--collective", "broadcast", "-p", 37, "--root", 11)
        self.assertGreater(len(found), 20)
        for arm in found:
            self.assertEqual(set(arm), {"algorithm", "parameters", "ok", "steps", "message"})
            self.assertTrue(arm["ok"], arm)
            self.assertGreater(arm["steps"], 0)
        algorithms = self.json_of("algorithms", "--collective", "broadcast")
        by_caches = {a["name"] for a in algorithms if needs(a, "caches")}
        listed = {a["name"] for a in algorithms} - {"native"} - by_caches
        on_nodes = {a["name"] for a in algorithms if needs(a, "nodes")}
        # In shared memory, of 4 ranks at most, 8 at most and of more.
        single, flat, tree = {"single_copy"}, {"shared_flat"}, {"shared_tree"}
        self.assertGreater(len(on_nodes), 0)
        self.assertEqual({a["algorithm"] for a in found}, listed - on_nodes - flat - single)
        few = ("verify", "--collective", "broadcast", "--root", 3, "-p")
        self.assertEqual({a["algorithm"] for a in self.json_of(*few, 4)}, listed - on_nodes - tree)
        self.assertEqual({a["algorithm"] for a in self.json_of(*few, 7)},
                         listed - on_nodes - tree - single)
        self.assertEqual({a["algorithm"] for a in self.json_of(*few, 7, "--ranks-per-node", 3)},
                         listed - tree - single)
        self.assertEqual({a["algorithm"] for a in self.json_of(
            "verify", "--collective", "broadcast", "-p", 12, "--ranks-per-cache", 5)},
            (listed | by_caches) - on_nodes - flat - single)
        self.assertEqual(by_caches, {"shared_caches"})

    def test_all_reduce(self):
        for ranks in (2, 7, 16):
            with self.subTest(ranks=ranks):
                found = self.json_of("verify", "--collective", "all_reduce", "-p", ranks)
                self.assertTrue(all(arm["ok"] for arm in found), found)

    def test_one_rank(self):
        self.json_of("verify", "--collective", "broadcast", "-p", 1)

    def test_bad_input(self):
        verify = ("verify", "--collective", "broadcast")
        self.check_refused(*verify, says="--ranks")
        for ranks in (0, -3, "x", 10 ** 12, "1.5"):
            with self.subTest(ranks=ranks):
                self.check_refused(*verify, "-p", ranks, says="--ranks")
        for root in (8, -1):
            self.check_refused(*verify, "-p", 8, "--root", root, says=("--root", "0 to 7"))
        self.check_refused("verify", "--collective", "", "-p", 8, says="--collective")
        self.check_refused(*verify, "-p", 8, "--ranks-per-node", 0, says="--ranks-per-node")
        self.check_refused(*verify, "-p", 8, "--ranks-per-cache", -1, says="--ranks-per-cache")


class Settings(ProgramTest):
    def values(self, environment=None, status=0):
        found = self.json_of("settings", environment=environment, status=status)
        return {s["name"]: s for s in found["settings"]}, found["problems"]

    def test_defaults(self):
        settings, problems = self.values()
        self.assertEqual(problems, [])
        self.assertEqual(settings["enable"]["value"], "on")
        self.assertEqual({s["source"] for name, s in settings.items() if name != "knowledge"},
                         {"default"})  # which no test leaves on

    def test_values_in_force_and_where_they_came_from(self):
        settings, _ = self.values({"RAILPASS_POLICY": "thompson", "RAILPASS_MIN_BYTES": "64KiB"})
        self.assertEqual(settings["policy"]["value"], "thompson")
        self.assertEqual(settings["policy"]["source"], "environment")
        self.assertEqual(settings["policy"]["variable"], "RAILPASS_POLICY")
        self.assertEqual(settings["min_bytes"]["value"], "64KiB")
        self.assertEqual(settings["seed"]["source"], "default")

    def test_problems_of_the_environment(self):
        for name, value in {"RAILPASS_NONSENSE": "1", "RAILPASS_ENABLE": "maybe",
                            "RAILPASS_MIN_BYTES": "-1", "RAILPASS_POLICY": "guess",
                            "RAILPASS_COLLECTIVES": "gossip",
                            "RAILPASS_USE": "broadcast:telepathy",
                            "RAILPASS_PROFILE": self.path("missing.json")}.items():
            with self.subTest(name=name):
                result = self.run_railpass("settings", environment={name: value}, status=1)
                said = "nonsense" if name == "RAILPASS_NONSENSE" else value.split(":")[-1]
                self.assertIn(said, result.stderr)
                self.assertEqual(len(self.values({name: value}, status=1)[1]), 1)

    def test_the_file_of_the_site(self):
        site = self.write("railpass.conf", "# for all\nseed = 7\n\npolicy = thompson\n")
        settings, problems = self.values({"RAILPASS_CONF": site, "RAILPASS_POLICY": "pass"})
        self.assertEqual(problems, [])
        self.assertEqual([settings["seed"][what] for what in ("value", "source")],
                         ["7", site + ": line 2"])
        self.assertEqual([settings["policy"][what] for what in ("value", "source")],
                         ["pass", "environment"])
        self.write("railpass.conf", "polcy = pass\npolicy = guess\n")
        _, problems = self.values({"RAILPASS_CONF": site}, status=1)
        self.assertEqual(len(problems), 2)
        self.assertTrue(problems[0].startswith(site + ": line 1: polcy: there is no setting"))
        self.assertTrue(problems[0].endswith("did you mean 'policy'?"))
        self.assertTrue(problems[1].startswith(site + ": line 2: "))
        self.assertIn("guess", problems[1])

    def test_policies(self):
        names = [p["name"] for p in self.json_of("settings", "--policies")]
        for name in ("pass", "thompson", "fixed", "native", "round_robin"):
            self.assertIn(name, names)
        settings, _ = self.values()
        self.assertIn(settings["policy"]["default"], names)


class Schedule(ProgramTest):
    def test_files_and_summary(self):
        trace, svg = self.path("trace.json"), self.path("timeline.svg")
        result = self.run_railpass("schedule", "broadcast:binomial", "-p", 16, "--bytes", "1MiB",
                                   "--trace", trace, "--svg", svg)
        self.assertIn("bottleneck: rank 0", result.stdout)
        with open(trace, encoding="utf-8") as file:
            self.assertGreater(len(json.load(file)["traceEvents"]), 30)
        self.assertTrue(xml.etree.ElementTree.parse(svg).getroot().tag.endswith("svg"))

    def test_json(self):
        found = self.json_of("schedule", "broadcast:binomial", "-p", 16, "--bytes", "1MiB",
                             "--root", 3)
        self.assertEqual(found["messages"], 15)
        self.assertEqual(len(found["ranks"]), 16)
        self.assertEqual(found["ranks"][3]["sent_bytes"], 4 << 20)
        self.assertEqual([r["received_bytes"] for r in found["ranks"] if r["rank"] != 3],
                         15 * [1 << 20])
        self.assertAlmostEqual(max(r["finish_s"] for r in found["ranks"]), found["time_s"])
        self.assertEqual(found["bottleneck"]["rank"], 3)

    def test_one_rank_and_no_bytes(self):
        self.json_of("schedule", "broadcast:binomial", "-p", 2, "--bytes", 0)
        self.json_of("schedule", "all_reduce:recursive_doubling", "-p", 5, "--bytes", 12)

    def test_bad_input(self):
        self.check_refused("schedule", "broadcast:binomial", says="--ranks")
        self.check_refused("schedule", "-p", 4)
        for what, says in {"binomial": "collective:arm", "broadcast:": "broadcast",
                           "gossip:ring": "gossip", "broadcast:telepathy": "telepathy",
                           "broadcast:binomial+speed=9": "speed",
                           "broadcast:native": "no schedule"}.items():
            with self.subTest(what=what):
                self.check_refused("schedule", what, "-p", 4, says=says)
        good = ("schedule", "broadcast:binomial", "-p", 4)
        self.check_refused(*good, "--root", 4, says="--root 4")
        for size in ("", "-1", "lots", "9999999999999GiB", "4GiB"):
            with self.subTest(size=size):
                self.check_refused(*good, "--bytes", size, says="--bytes")
        self.check_refused("schedule", "broadcast:pipeline+segment_bytes=1KiB", "-p", 4096,
                           "--bytes", "1GiB", says="more messages")
        self.check_refused(*good, "--profile", self.path("none.json"), status=1, says="none.json")
        self.check_refused(*good, "--svg", self.path("no/folder.svg"), status=1, says="no/folder")


    def test_many_ranks_are_summarised_and_some_are_drawn(self):
        svg = self.path("t.svg")
        said = self.run_railpass("schedule", "all_reduce:ring", "-p", 256, "--bytes", "1MiB",
                                 "--svg", svg).stdout
        self.assertRegex(said, r"(?m)^median ")
        self.assertLess(said.count("\n"), 20)
        self.assertIn("a selection of the ranks", said)
        self.assertLess(os.path.getsize(svg), 5000000)
        with open(svg, encoding="utf-8") as file:
            self.assertRegex(file.read(), "drawn are 6[1-4] of the ranks")
        said = self.run_railpass("schedule", "broadcast:binomial", "-p", 32, "--svg", svg).stdout
        self.assertRegex(said, r"(?m)^31 ")
        self.assertNotIn("selection", said)


class Predict(ProgramTest):
    def test_without_a_profile_no_doubt_is_claimed(self):
        query = ("predict", "--collective", "broadcast", "-p", 6144, "--bytes", 8)
        said = self.run_railpass(*query).stdout
        self.assertIn("no profile: generic constants", said)
        self.assertNotIn("x/", said)
        self.assertIn(" alike", said)  # of 8 bytes no arm has segments
        self.assertEqual({p["spread"] for p in self.json_of(*query)["predictions"]}, {None})
        self.assertNotIn(" alike", self.run_railpass(*query, "--all").stdout)

    def test_generic(self):
        found = self.json_of("predict", "--collective", "broadcast", "-p", 64, "--ranks-per-node",
                             4, "--bytes", "1KiB,1MiB")
        times = {(p["bytes"], p["arm"]): p["predicted_s"] for p in found["predictions"]}
        self.assertGreater(times[1 << 20, "binomial"], times[1 << 10, "binomial"])
        self.assertIsNone(times[1 << 10, "native"])
        self.assertEqual(found["crossovers"][0]["from_bytes"], 1024)
        for place, change in enumerate(found["crossovers"][1:]):
            self.assertGreater(change["from_bytes"], found["crossovers"][place]["from_bytes"])

    def test_chosen_arms_simulated(self):
        found = self.json_of("predict", "--collective", "all_reduce", "-p", 8, "--bytes",
                             "4KiB..16KiB", "--arms", "ring,recursive_doubling", "--simulate")
        self.assertEqual([p["bytes"] for p in found["predictions"]],
                         [4096, 4096, 8192, 8192, 16384, 16384])
        for prediction in found["predictions"]:
            self.assertGreater(prediction["simulated_s"], 0)

    def test_bad_input(self):
        good = ("predict", "--collective", "broadcast")
        self.check_refused(*good, says="--ranks")
        self.check_refused(*good, "-p", 0, says="--ranks")
        self.check_refused(*good, "-p", 4, "--ranks-per-node", 0, says="--ranks-per-node")
        for sizes in ("", ",", "1KiB,", "1KiB,x", "8EiB", "4..2", "..", "0..5", "99999999999999999"):
            with self.subTest(sizes=sizes):
                self.check_refused(*good, "-p", 4, "--bytes", sizes, says="--bytes")
        self.check_refused(*good, "-p", 4, "--arms", "telepathy", says="telepathy")
        self.check_refused(*good, "-p", 4, "--arms", "", "--bytes", "x", says="--bytes")
        self.check_refused(*good, "-p", 4, "--profile", self.path("gone.json"), status=1,
                           says="gone.json")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSL-1.0
"""railpass tune with commands that behave, hang, crash, print garbage and leave children behind."""
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from pages import check_page  # noqa: E402
from program import MPIEXEC, PROGRAM, ProgramTest, main  # noqa: E402

# A benchmark made up of a formula; it notes each launch in the file LAUNCHES.
BENCHMARK = """#!/bin/sh
echo launch >> "$LAUNCHES"
a=${PLAIN_a:-${OMPI_MCA_a:-0}}; b=${PLAIN_b:-${OMPI_MCA_b:-0}}
%s
echo "lat: $((10 + (a - 3) * (a - 3) + b))"
"""
SPACE = "PLAIN_a -d 0 -p {0 1 2 3 4}\nPLAIN_b -p {0 1 2}\n"


class Tune(ProgramTest):
    def setUp(self):
        super().setUp()
        self.environment = {"LAUNCHES": self.path("launches")}

    def benchmark(self, extra=""):
        script = self.write("benchmark", BENCHMARK % extra)
        os.chmod(script, 0o755)
        return script

    def launches(self):
        with open(self.path("launches"), encoding="utf-8") as file:
            return len(file.readlines())

    def tune(self, space, command, *arguments, **options):
        return self.json_of("tune", self.write("p.conf", space), "--command", command, "--extract",
                            "lat: ([0-9.]+)", "--journal", self.path("journal"), *arguments,
                            environment=self.environment, **options)

    def test_groups_default_and_recommended(self):
        for search in ("exhaustive", "model", "halving", "attribute", "factorial", "random"):
            with self.subTest(search=search):
                for left in ("journal", "launches"):
                    if os.path.exists(self.path(left)):
                        os.unlink(self.path(left))
                found = self.tune(SPACE, self.benchmark(), "--search", search, "--repetitions", 2)
                self.assertEqual(found["runs"], self.launches())
                self.assertEqual(found["recommended"], {"PLAIN_a": "3", "PLAIN_b": "0"})
                self.assertAlmostEqual(found["default"], 19)
                self.assertAlmostEqual(found["ratio_to_default"]["value"], 10 / 19)
                values = [group["value"] for group in found["groups"]]
                self.assertEqual(values, sorted(values))
                for group in found["groups"]:
                    self.assertEqual(group["count"], len(group["combinations"]))
                    for c in group["combinations"]:
                        expected = 10 + (int(c["PLAIN_a"]) - 3) ** 2 + int(c["PLAIN_b"])
                        self.assertAlmostEqual(group["value"], expected)
                if search == "exhaustive":
                    self.assertEqual(sum(g["count"] for g in found["groups"]), 15)
                    self.assertEqual(found["groups"][1]["count"], 3)  # 11: a 2 or 4, b 0; a 3, b 1

    def test_nothing_is_recommended_that_is_not_shown_to_be_better(self):
        done = self.run_railpass("tune", self.write("p.conf", SPACE), "--command", "echo lat: 10",
                                 "--extract", "lat: (.*)", "--journal", self.path("journal"),
                                 "--json", self.path("r.json"), "--settings", self.path("s"))
        self.assertIn("No combination is shown to be better than the default", done.stdout)
        self.assertIn("No parameter is shown to matter", done.stdout)
        with open(self.path("r.json"), encoding="utf-8") as file:
            self.assertIsNone(json.load(file)["recommended"])
        with open(self.path("s"), encoding="utf-8") as file:
            self.assertNotIn("PLAIN", file.read())

    def test_targets(self):
        space = "a -p {0 3}\nb -v -p {1 0}\nc -a \"$a$/$b$\"\n"
        found = self.tune(space, self.benchmark("b=${OMPI_MCA_c#*/}"), "--target", "openmpi",
                          "--settings", self.path("mca-params.conf"))
        self.assertEqual(found["recommended"], {"a": "3", "c": "3/0"})
        with open(self.path("mca-params.conf"), encoding="utf-8") as file:
            self.assertIn("\na = 3\nc = 3/0\n", file.read())
        for target, parameter in (("openmpi", {"name": "a", "values": ["1", "2\n3"]}),
                                  ("openmpi", {"name": "a", "values": ["1", "2 "]}),
                                  ("openmpi", {"name": "a b", "values": ["1"]}),
                                  ("env", {"name": "a-b", "values": ["1"]})):
            odd = self.write("odd.json", json.dumps(
                {"format": "railpass parameters", "version": 1, "parameters": [parameter]}))
            self.check_refused("tune", odd, "--command", "true", "--extract", "x", "--target", target,
                               "--settings", self.path("odd"), "--journal", self.path("j"),
                               says="--settings")
        odd = self.write("odd.json", json.dumps({"format": "railpass parameters", "version": 1,
                                                 "parameters": [{"name": "a\nb", "values": [1]}]}))
        self.check_refused("tune", odd, "--count", status=1, says="without control characters")
        os.unlink(self.path("journal"))
        found = self.tune("x -p {1 2}\ny -p {a b}\n", "echo lat: {x}; test {y} = a || echo lat: 9",
                          "--target", "words", "--settings", self.path("words"))
        self.assertIsNone(found["recommended"])  # that is the default
        self.assertEqual(found["groups"][0]["combinations"], [{"x": "1", "y": "a"}])
        self.check_refused("tune", self.path("p.conf"), "--command", "echo lat: {x}", "--extract",
                           "lat: (.*)", "--target", "words", says="{y}")

    def test_bandwidth_time_and_two_metrics(self):
        command = "echo lat: $((10 - a)); echo bw: $((100 - 10 * a + b))"
        found = self.tune("a -p {1 2 3}\nb -p {0 1}\n", command, "--extract", "bw: (.*)", "--metric",
                          "latency,bandwidth", "--search", "exhaustive")
        front = {(int(e["combination"]["a"]), int(e["combination"]["b"])) for e in found["front"]}
        self.assertEqual(front, {(1, 1), (2, 1), (3, 1)})
        os.unlink(self.path("journal"))
        space = self.write("p.conf", "a -p {1 2}\n")
        found = self.json_of("tune", space, "--command", "sleep 0.$a", "--metric", "time",
                             "--repetitions", 2, "--journal", self.path("journal"))
        # What other work adds decides which is best; no run takes less than it sleeps.
        self.assertGreaterEqual(found["groups"][0]["value"], 0.1)
        self.assertEqual(sum(g["count"] for g in found["groups"]), 2)

    def test_formats_of_benchmarks(self):
        osu = "# OSU MPI Latency Test v7.2\\n# Size  Latency (us)\\n1 %s\\n1024 7.0\\n"
        netpipe = "  0:  1 bytes  2513 times --> 0.26 Mbps in %s usec\\n"
        for name, text in (("osu", osu % "$a"), ("netpipe", netpipe % "$a")):
            with self.subTest(format=name):
                found = self.json_of("tune", self.write("p.conf", "a -p {5.0 4.0}\n"), "--command",
                                     f'printf "{text}" > {{output}}', "--output-of", name,
                                     "--bytes", "1", "--journal", self.path(name))
                self.assertEqual(found["recommended"], {"a": "4.0"})
                self.assertAlmostEqual(found["groups"][0]["value"], 4e-6)

    def test_failed_launches_are_worst_and_reported(self):
        trouble = """case $a in
            0) sleep 60;;
            1) echo no such network >&2; exit 3;;
            2) kill -SEGV $$;;
            4) yes garbage | head -c 2000000; exit 0;;
        esac"""
        found = self.tune(SPACE, self.benchmark(trouble), "--timeout", "2s", "--search",
                          "exhaustive", "--warm-up", 0)
        self.assertIsNone(found["default"])  # it hangs
        self.assertEqual(found["recommended"], {"PLAIN_a": "3", "PLAIN_b": "0"})
        self.assertEqual(sum(g["count"] for g in found["groups"]), 3)
        messages = " ".join(f["message"] for f in found["failures"])
        for words in ("did not end within 2 s", "status 3: no such network", "signal 11", "lat: "):
            self.assertIn(words, messages)
        self.assertEqual([f["count"] for f in found["failures"]], [3, 3, 3, 3])

    def test_nothing_works(self):
        self.check_refused("tune", self.write("p.conf", SPACE), "--command", "echo lat: 0",
                           "--extract", "lat: (.*)", "--journal", self.path("j"), status=1,
                           says=("no launch gave a value", "> 0"))

    def test_children_do_not_outlive_their_launch(self):
        mark = f"MARK=railpass-tune-test-{os.getpid()}"
        children = """export %s
            sleep 300 & setsid sleep 300 & (trap '' TERM; setsid sleep 300; sleep 300) &
            test $a = 1 && { trap '' TERM; sleep 60; }""" % mark
        found = self.tune("PLAIN_a -p {3 1}\n", self.benchmark(children), "--timeout", "2s",
                          "--warm-up", 0, "--repetitions", 1)
        self.assertEqual(found["recommended"], {"PLAIN_a": "3"})
        self.assertEqual(found["failures"][0]["count"], 1)
        self.assertEqual(self.running(mark), [])

    def test_nothing_outlives_a_tuning_that_is_ended(self):
        mark = f"MARK=railpass-tune-test-{os.getpid()}"
        name, value = mark.split("=")
        os.mkdir(self.path("temporary"))
        self.environment.update({name: value, "STARTED": self.path("started"),
                                 "TMPDIR": self.path("temporary")})
        sleeper = self.write("sleeper", """#!/bin/sh
            echo started >> "$STARTED"; exec sleep 300""")
        os.chmod(sleeper, 0o755)
        command = f"""{sleeper} & setsid {sleeper} & (trap '' TERM; setsid {sleeper}; {sleeper}) &
            (setsid sh -c '{sleeper} & exit') & {MPIEXEC} -n 2 {sleeper} & wait"""
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                open(self.path("started"), "w", encoding="utf-8").close()
                process = subprocess.Popen(
                    [PROGRAM, "tune", self.write("p.conf", SPACE), "--command", command, "--extract",
                     "lat: (.*)"], cwd=self.folder, env={**os.environ, **self.environment},
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                self.wait_until(lambda: os.path.getsize(self.path("started")) >= 6 * 8)
                self.assertGreaterEqual(len(self.running(mark)), 8)
                process.send_signal(number)
                process.wait(timeout=3000)
                self.wait_until(lambda: self.running(mark) == [])
                self.assertEqual([n for n in os.listdir(self.path("temporary")) if "railpass" in n], [])

    def test_killed_and_resumed(self):
        command = [PROGRAM, "tune", self.write("p.conf", SPACE), "--command",
                   self.benchmark("sleep 0.02"), "--extract", "lat: (.*)", "--search", "exhaustive",
                   "--json", self.path("result.json")]
        environment = {**os.environ, **self.environment}
        for number in (signal.SIGKILL, signal.SIGINT):
            before = self.launches() if os.path.exists(self.path("launches")) else 0
            process = subprocess.Popen(command, cwd=self.folder, env=environment,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)
            while process.poll() is None and (not os.path.exists(self.path("launches")) or
                                              self.launches() < before + 6):
                time.sleep(0.01)
            process.send_signal(number)
            said = process.communicate(timeout=300)[1]
            if number == signal.SIGINT:
                self.assertEqual(process.returncode, 1)
                self.assertIn("run the same command again to resume", said)
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=3000, check=True)
        self.assertIn("continues after", done.stderr)
        with open(self.path("result.json"), encoding="utf-8") as file:
            found = json.load(file)
        self.assertEqual(found["runs"], self.launches())
        # Each combination three times, one warm-up, three checks of two; two launches were cut off.
        self.assertLessEqual(found["runs"], 15 * 3 + 1 + 6 + 2)
        self.assertEqual(found["recommended"], {"PLAIN_a": "3", "PLAIN_b": "0"})
        self.assertEqual([name for name in os.listdir(self.folder) if "journal" in name], [])

    def test_a_journal_of_something_else_is_refused(self):
        self.tune("PLAIN_a -p {3 1}\n", self.benchmark())
        launched = self.launches()
        for space, command in (("PLAIN_a -p {3 2}\n", "benchmark"), ("PLAIN_a -p {3 1}\n", "other")):
            self.check_refused("tune", self.write("p.conf", space), "--command", self.path(command),
                               "--extract", "lat: ([0-9.]+)", "--journal", self.path("journal"),
                               status=1, says=("journal", "other parameters"))
        for text, says in (("my notes\n", "notes: line 1"), ("one line", "notes: not a journal")):
            kept = self.write("notes", text)
            self.check_refused("tune", self.path("p.conf"), "--command", "true", "--extract", "x",
                               "--journal", kept, status=1, says=says)
            with open(kept, encoding="utf-8") as file:
                self.assertEqual(file.read(), text)
        self.assertEqual(self.launches(), launched)

    def test_a_budget_for_a_large_space(self):
        space = "".join(f"P{i} -p {{0 1 2 3}}\n" for i in range(8))  # 65536
        terms = " + ".join(f"(P{i} - {i % 4}) * (P{i} - {i % 4})" for i in range(8))
        found = self.tune(space, f"echo lat: $((10 + {terms}))", "--budget", "2m", "--runs", 200)
        self.assertLessEqual(found["runs"], 200)
        self.assertAlmostEqual(found["groups"][0]["value"], 10)
        self.assertEqual(found["recommended"], {f"P{i}": str(i % 4) for i in range(8)})

    def test_union_and_intersection(self):
        a = self.path("a.json")
        b = self.path("b.json")
        space = self.write("p.conf", "x -d 1 -p {1 2 3}\ny -v -p {1 2}\nz -a \"$y$\"\n")
        for path, formula in ((a, "x > 2"), (b, "x == 2")):
            self.run_railpass("tune", space, "--command", f"echo lat: $((1 + ({formula})))",
                              "--extract", "lat: (.*)", "--journal", path + ".journal", "--json", path)
        self.assertEqual(self.run_railpass("tune", "--intersection", a, b).stdout,
                         'x -d "1" -p {1}\ny -v -p {1 2}\nz -a "$y$"\n')
        self.assertIn("-p {1 2 3}", self.run_railpass("tune", "--union", a, b).stdout)
        self.check_refused("tune", "--union", a, space, status=1, says="p.conf")

    def test_count_and_wrong_use(self):
        space = self.write("p.conf", SPACE + "c -p {1 2} -i \"PLAIN_a 3 >\"\n")
        self.assertEqual(self.json_of("tune", space, "--count"),
                         {"all": 30, "strict": 6, "combinations": 18})
        wrong = self.write("wrong.conf", "a -p {1 2}\nb -r 1\n")
        self.check_refused("tune", wrong, "--command", "x", status=1,
                           says=("wrong.conf: line 2", "'-r'"))
        command = ("--command", "true", "--extract", "x")
        self.check_refused("tune", says="file of parameters")
        self.check_refused("tune", space, says="--command")
        self.check_refused("tune", space, "--command", "x", says="--extract")
        self.check_refused("tune", space, *command, "--target", "cray", says="openmpi, mpich")
        self.check_refused("tune", space, *command, "--search", "luck", says="model, halving")
        self.check_refused("tune", space, *command, "--metric", "beauty", says="bandwidth")
        self.check_refused("tune", space, *command, "--timeout", "soon", says="--timeout")
        self.check_refused("tune", space, "--command", "x", "--extract", "(", says="'('")

    def test_discover(self):
        if subprocess.run(["sh", "-c", "command -v ompi_info"], capture_output=True).returncode:
            self.skipTest("no Open MPI here")
        found = self.json_of("tune", "--discover", "--target", "openmpi")["parameters"]
        by_name = {p["name"]: p for p in found}
        self.assertGreater(len(by_name), 200)
        self.assertTrue(by_name["coll_tuned_bcast_algorithm"]["values"])
        self.assertEqual(by_name["mpi_yield_when_idle"]["values"], ["0", "1"])
        text = self.run_railpass("tune", "--discover", "--target", "openmpi").stdout
        lines = [line[1:] for line in text.split("\n") if line.startswith("#btl_tcp_eager_limit ")]
        self.assertEqual(len(lines), 1)
        space = self.write("found.conf", lines[0] + "\n")
        self.assertGreater(self.json_of("tune", space, "--count")["all"], 3)

    def test_the_page(self):
        self.tune(SPACE, self.benchmark(), "--html", self.path("page.html"))
        page = check_page(self, self.path("page.html"))
        for expected in ("PLAIN_a", "<table>", '<figure class="chart">', "Chart.js v"):
            self.assertIn(expected, page)
        self.assertLess(len(page), 400000)


if __name__ == "__main__":
    main()

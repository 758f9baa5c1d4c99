# SPDX-License-Identifier: BSL-1.0
"""bench/rails: results in the form it promises, wrong arguments refused, nothing left behind.

    rails.py TOOL BUILD

Ends with the tool's status for SKIPPED where the machine cannot emulate hosts.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TOOL, BUILD = sys.argv[1:]
SKIPPED = 77
SIZE = 256 << 10


def tool(*words):
    return subprocess.Popen([TOOL, "--build", BUILD, *words], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def hosts_of(pid):
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    return [line for line in listed.splitlines() if line.startswith(f"rails{pid}x")]


class Rails(unittest.TestCase):
    def succeed(self, *words):
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            run = tool("--json", file.name, "--repetitions", "1", *words)
            output, errors = run.communicate(timeout=300)
            if run.returncode == SKIPPED:
                print(errors, file=sys.stderr)
                os._exit(SKIPPED)
            self.assertEqual(run.returncode, 0, output + errors)
            self.assertEqual(hosts_of(run.pid), [])
            return json.load(file)

    def test_results(self):
        said = self.succeed("--rates", "200,100", "--bytes", f"1KiB,{SIZE}", "--setups",
                            "rail0,rail1,railpass,openmpi")
        self.assertEqual([(r["setup"], r["bytes"]) for r in said["results"]],
                         [(s, b) for b in (1024, SIZE)
                          for s in ("rail0", "rail1", "railpass", "openmpi")])
        for r in said["results"]:
            self.assertGreater(r["latency_s"], 0)
            self.assertGreater(r["mbit_s"], 0)
        by_setup = {r["setup"]: r for r in said["results"] if r["bytes"] == SIZE}
        self.assertGreater(by_setup["rail0"]["shares"][0], 0.95)
        self.assertGreater(by_setup["rail1"]["shares"][1], 0.95)
        # Each network is shaped: no setup can be quicker, whatever the machine is doing.
        self.assertLess(by_setup["rail1"]["mbit_s"], 110)
        self.assertLess(by_setup["railpass"]["mbit_s"], 330)

    def test_behind_one_link_and_to_one_host(self):
        said = self.succeed("--rates", "100,100", "--bytes", str(SIZE), "--setups", "railpass",
                            "--scenario", "bottleneck")
        self.assertLess(said["results"][0]["mbit_s"], 110)
        said = self.succeed("--rates", "100,100", "--bytes", str(SIZE), "--setups", "railpass",
                            "--scenario", "to_first", "--hosts", "3")
        self.assertLess(said["results"][0]["mbit_s"], 220)

    def test_arms_after_a_change(self):
        # An error if the ranks do not agree on the arms.
        said = self.succeed("--rates", "200,100", "--bytes", "16KiB", "--scenario", "retune",
                            "--hosts", "3")
        self.assertEqual([r["first_rate"] for r in said["results"]], ["high", "falls", "rises"])
        for r in said["results"]:
            self.assertEqual(len(r["arms"]), 1)

    def test_wrong_arguments(self):
        for words, text in ((["--rates", "400,fast"], "'fast' is not a rate"),
                            (["--bytes", "64K"], "'64K' is not a size"),
                            (["--bytes", "0"], "'0' is not a size"),
                            (["--setups", "rail2"], "setup 'rail2'"),
                            (["--setups", "ucx,ucx"], "names one twice"),
                            (["--window", "0"], "'0' is not a number"),
                            (["--rates", "400", "--scenario", "change"], "two rates"),
                            (["--setups", "ucx", "--scenario", "retune"], "setups of railpass"),
                            (["--json", "/nowhere/x.json"], "cannot be written"),
                            (["--build", "/nowhere"], "is not there")):
            run = tool(*words)
            _, errors = run.communicate(timeout=120)
            self.assertEqual(run.returncode, 2, words)
            self.assertIn(text, errors)

    def test_nothing_stays_when_interrupted(self):
        for later_s in (0, 2):  # while the hosts are being made, and while messages run
            run = tool("--setups", "rail0")
            until = time.monotonic() + 30
            while time.monotonic() < until and run.poll() is None and not hosts_of(run.pid):
                time.sleep(0.05)
            time.sleep(later_s)
            if run.poll() is None:
                run.send_signal(signal.SIGTERM)
            run.communicate(timeout=240)
            self.assertEqual(hosts_of(run.pid), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

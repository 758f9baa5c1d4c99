# SPDX-License-Identifier: BSL-1.0
"""bench/cluster: hosts are distinct, links shaped, and nothing stays behind, whatever happens.

    cluster.py TOOL DISTINCT_HOSTS RAILS_BETWEEN_HOSTS LOST_NETWORK CLOCKS

Ends with the tool's status for SKIPPED where the machine cannot emulate a cluster.
"""

import fcntl
import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

TOOL, DISTINCT_HOSTS, RAILS_BETWEEN_HOSTS, LOST_NETWORK, CLOCKS = sys.argv[1:]
SKIPPED = 77
NAME = f"t{os.getpid()}x"  # other clusters may be up
STATE = Path("/run/railpass-cluster")
ALLOWED_CONTROLS = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")


def allowed_controls():
    """While no cluster comes, which changes them for a moment."""
    STATE.mkdir(exist_ok=True)
    with open(STATE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return ALLOWED_CONTROLS.read_text()


def command(*words):
    return [sys.executable, TOOL, "--name", NAME, *words]


def tool(*words):
    return subprocess.run(command(*words), capture_output=True, text=True, timeout=240)


def remains():
    """What there is of this test's cluster on the machine."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    found = [line for line in listed.splitlines() if line.startswith(NAME)]
    found += [str(p) for p in Path("/etc/netns").glob(NAME + "*")]
    found += [str(p) for p in STATE.glob(NAME + "*")]
    return found


class Cluster(unittest.TestCase):
    def tearDown(self):
        tool("down")
        self.assertEqual(remains(), [])

    def succeed(self, *words):
        done = tool(*words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def fail_with(self, text, *words):
        done = tool(*words)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(text, done.stderr)

    def test_hosts_are_distinct_and_messages_arrive(self):
        allowed = allowed_controls()
        self.succeed("up", "--hosts", "3", "--rate", "150mbit")
        self.assertEqual(allowed_controls(), allowed)
        self.succeed("run", "--hosts", "3", "--", DISTINCT_HOSTS, "3", "1")
        self.succeed("run", "--hosts", "2", "--ranks-per-host", "2", "--",
                     DISTINCT_HOSTS, "4", "2")
        self.assertEqual(self.succeed("exec", "2", "hostname").strip(), f"{NAME}2")
        self.assertIn("tbf", self.succeed("exec", "1", "tc", "qdisc", "show", "dev", "eth0"))
        self.assertIn("150Mbit", self.succeed("exec", "1", "tc", "qdisc", "show", "dev", "eth0"))
        self.fail_with("is up", "up", "--hosts", "2")
        self.fail_with("has 3 hosts", "run", "--hosts", "4", "--", "true")
        self.succeed("down")
        self.assertEqual(remains(), [])
        self.succeed("down")

    def test_ranks_of_hosts_agree_on_a_clock(self):
        if subprocess.run(["unshare", "--time", "--monotonic", "1", "true"], check=False,
                          stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("the kernel has no time namespaces")
        self.succeed("run", "--hosts", "3", "--ranks-per-host", "2", "--", CLOCKS)

    def test_a_run_without_a_cluster_makes_its_own(self):
        self.succeed("run", "--hosts", "2", "--", DISTINCT_HOSTS, "2", "1")
        self.assertEqual(remains(), [])

    def test_collectives_use_two_networks_and_notice_that_one_gets_slow(self):
        self.succeed("run", "--hosts", "4", "--rate", "400mbit,100mbit",
                     "--env", "RAILPASS_RAILS=eth0,eth1", "--env", "RAILPASS_LOG=stderr",
                     "--timeout", "200", "--", RAILS_BETWEEN_HOSTS)

    def lose_a_network(self, how, rails):
        self.succeed("run", "--hosts", "2", "--env", f"RAILPASS_RAILS={rails}",
                     "--env", "RAILPASS_RAILS_SILENCE=2", "--timeout", "200",
                     "--", LOST_NETWORK, how)

    def test_a_network_that_loses_everything_is_noticed_and_a_rank_that_computes_is_no_error(self):
        self.succeed("up", "--hosts", "2", "--rate", "400mbit,400mbit")
        # By a labelled address, too.
        for host in ("0", "1"):
            self.succeed("exec", host, "ip", "address", "add", f"10.99.0.{int(host) + 1}/24",
                         "dev", "eth1", "label", "eth1:0")
        self.lose_a_network("drop", "10.99.0.0/24")

    def test_an_interface_that_is_switched_off_is_noticed(self):
        self.succeed("up", "--hosts", "2", "--rate", "400mbit,400mbit")
        self.lose_a_network("down", "eth1")

    def test_a_failing_rank_is_reported(self):
        done = tool("run", "--hosts", "2", "--", DISTINCT_HOSTS, "2", "2")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("rank 1: 2 ranks, 1 on this host", done.stderr + done.stdout)

    def test_ranks_get_their_environment(self):
        shown = self.succeed("run", "--hosts", "2", "--env", "COLOUR=red", "--", "env")
        self.assertEqual(shown.splitlines().count("COLOUR=red"), 2, shown)

    def test_a_run_is_bounded(self):
        self.fail_with("did not end within 2 s", "run", "--hosts", "2",
                       "--timeout", "2", "--", "sleep", "50")
        self.assertEqual(remains(), [])

    def test_an_interrupted_run_cleans_up(self):
        with subprocess.Popen(command("run", "--hosts", "2", "--", "sleep", "50"),
                              stderr=subprocess.DEVNULL) as running:
            until = time.monotonic() + 30
            while tool("exec", "1", "hostname").returncode != 0 and time.monotonic() < until:
                time.sleep(0.1)
            running.send_signal(signal.SIGINT)
            self.assertEqual(running.wait(30), 128 + signal.SIGINT)
        self.assertEqual(remains(), [])

    def test_wrong_use(self):
        for words in (["up"], ["up", "--hosts", "0"], ["up", "--hosts", "2", "--rate", "fast"],
                      ["run", "--hosts", "2", "--"], ["exec", "x", "true"], ["fly"],
                      ["run", "--hosts", "2", "--env", "COLOUR", "--", "true"]):
            self.assertEqual(tool(*words).returncode, 2, words)


if __name__ == "__main__":
    probe = tool("run", "--hosts", "1", "--", "true")
    if probe.returncode == SKIPPED:
        sys.exit(print(probe.stderr) or SKIPPED)
    unittest.main(argv=sys.argv[:1])

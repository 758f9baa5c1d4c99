# SPDX-License-Identifier: BSL-1.0
"""Emulated hosts (bench/cluster) on which programs of bench start railpass."""
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SKIPPED = 77


def run(*command, timeout_s=900):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout_s,
                          check=False)
    if done.returncode == SKIPPED:
        print(done.stdout + done.stderr, end="")
        sys.exit(SKIPPED)
    if done.returncode != 0:
        sys.exit(f"{command}: ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def words(sizes):
    return ",".join(map(str, sizes))


class Hosts:
    """Emulated hosts, up while this lives."""

    def __init__(self, o):
        self.o, self.railpass = o, Path(o.build).resolve() / "lib/cli/railpass"
        self.command = [sys.executable, HERE / "cluster", "--name", f"bench{os.getpid()}x"]

    def __enter__(self):
        run(*self.command, "up", "--hosts", self.o.hosts, "--rate", self.o.rate)
        return self

    def __exit__(self, *_):
        run(*self.command, "down")

    def bench(self, arms, sizes, budget, collectives, settings=()):
        """The result rows of one launch."""
        path = self.o.folder / "launch.json"
        exported = [word for setting in settings for word in ("--env", setting)]
        run(*self.command, "run", "--hosts", self.o.hosts, *exported, "--", self.railpass, "bench", "--arms", arms,
            "--bytes", words(sizes), "--collectives", ",".join(collectives), "--budget", f"{budget}s",
            "--json", path)
        return json.loads(path.read_text())

    def launcher(self):
        """A program with mpiexec's arguments, for railpass to start ranks on the hosts."""
        path = self.o.folder.resolve() / "mpiexec"
        path.write_text('#!/bin/sh\ncase "$1" in --version) exec mpiexec.openmpi --version;; esac\n'
                        'hosts=$2\n'
                        'until [ -x "$1" ]; do shift; done  # the other options are those of one host\n'
                        'exec ' + " ".join(map(str, self.command)) + ' run --hosts "$hosts" -- "$@"\n')
        path.chmod(0o755)
        return path

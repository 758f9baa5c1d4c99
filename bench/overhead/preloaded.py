#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What the preload library adds to a settled call that goes to the MPI library's own collective: a
program that broadcasts one byte on 2 ranks, with and without it in turn, one rank per core.

    ninja -C BUILD overhead_plain_call overhead_empty_broadcast railpass_preload_so
    python3 bench/overhead/preloaded.py BUILD [--plan] [--pairs 11] [--mpiexec 'mpiexec --bind-to core']

First with a broadcast that returns at once, then with the MPI library's own. With --plan the program
follows a plan that names an arm of all_reduce, so its broadcasts are native; else one of 64 calls is
timed by railpass, as in any settled context. Batches are short, so that their median is of some that
nothing interrupted; beside other work the MPI library's own broadcast, which waits for the other rank,
still says nothing.
"""

import argparse
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from medians import bounds_of_median  # noqa: E402

# Of any machine.
PLAN = {"format": "railpass plan", "version": 1, "written_at": "2026-01-31T12:00:00Z",
        "machine_id": {"num_hosts": 1, "cores_per_host": 0, "cpu_model": "", "mpi_library": ""},
        "calls": [{"collective": "all_reduce", "operation": "builtin", "num_ranks": 2, "ranks_per_node": 2,
                   "from_bytes": 0, "variant": "recursive_doubling"}]}


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    options.add_argument("build")
    options.add_argument("--plan", action="store_true")
    options.add_argument("--pairs", type=int, default=11)
    options.add_argument("--calls", type=int, default=2000)
    options.add_argument("--batches", type=int, default=301)
    options.add_argument("--mpiexec", default="mpiexec --bind-to core")
    o = options.parse_args()
    program, empty, preload = (os.path.join(os.path.abspath(o.build), name) for name in (
        "bench/overhead_plain_call", "bench/libempty_broadcast.so", "lib/librailpass_preload.so"))

    plan = tempfile.NamedTemporaryFile("w", suffix=".json")  # until the program ends
    json.dump(PLAN, plan)
    plan.flush()
    settings = {"RAILPASS_PLAN": plan.name, "RAILPASS_ALL_RANKS": "on"} if o.plan else {"RAILPASS_POLICY": "native"}

    def ns_per_call(*preloaded):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RAILPASS")}
        environment["RAILPASS_KNOWLEDGE"] = "off"  # each run is the first one
        environment |= settings | {"LD_PRELOAD": ":".join(preloaded)}
        done = subprocess.run([*shlex.split(o.mpiexec), "-n", "2", program, str(o.calls), str(o.batches)],
                              env=environment, capture_output=True, text=True, timeout=300,
                              stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0 or done.stderr:
            sys.exit(f"{o.mpiexec} failed: {done.stderr}")
        return statistics.median(map(float, done.stdout.split()))

    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load "
          f"{os.getloadavg()[0]:.2f}, {o.pairs} pairs of runs, medians of {o.batches} x {o.calls} calls")
    for name, behind in ("a broadcast that does nothing", (empty,)), ("the MPI library's broadcast", ()):
        pairs = []
        for i in range(o.pairs):
            # Who comes first changes.
            if i % 2:
                with_railpass = ns_per_call(preload, *behind)
                without = ns_per_call(*behind)
            else:
                without = ns_per_call(*behind)
                with_railpass = ns_per_call(preload, *behind)
            pairs.append((without, with_railpass))
        added = [b - a for a, b in pairs]
        low, high, confidence = bounds_of_median(added)
        print(f"{name}: {statistics.median(a for a, _ in pairs):.1f} ns without, "
              f"{statistics.median(b for _, b in pairs):.1f} ns with, "
              f"difference {statistics.median(added):.1f} ns ({low:.1f} .. {high:.1f}, "
              f"{100 * confidence:.0f} % confidence)", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What the preload library adds to streams of short calls on fresh communicators: streams.c alone and
with the preload library of one or more builds, which all take turns.

    ninja -C BUILD overhead_streams railpass_preload_so
    python3 bench/overhead/streams.py BUILD... [--ranks 2] [--calls 20000] [--rounds 7]

A stream ends with a barrier, so what ranks do after each other in it counts once. Ratios are of
medians over the rounds, to the program alone: of the first hundredth of the calls, the rest of the
first tenth, and the others.
"""

import argparse
import math
import os
import platform
import shlex
import statistics
import subprocess
import sys

PARTS = 3


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    options.add_argument("builds", nargs="+", metavar="BUILD", help="the program is the first one's")
    options.add_argument("--ranks", type=int, default=2)
    options.add_argument("--calls", type=int, default=20000)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--mpiexec", default="mpiexec --bind-to core",
                         help="more ranks than cores need an MPI that yields when it is idle")
    o = options.parse_args()
    program = os.path.join(os.path.abspath(o.builds[0]), "bench/overhead_streams")
    if o.calls < 1000 or o.rounds < 1 or o.ranks < 1:
        options.error("expected at least 1000 calls, 1 round and 1 rank")

    def measured(build):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RAILPASS")}
        if build:
            environment["LD_PRELOAD"] = os.path.join(os.path.abspath(build),
                                                     "lib/librailpass_preload.so")
        done = subprocess.run([*shlex.split(o.mpiexec), "-n", str(o.ranks), program, str(o.calls)],
                              env=environment, capture_output=True, text=True, timeout=600,
                              stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            sys.exit(f"{o.mpiexec} failed: {done.stderr}")
        lines = [line.split() for line in done.stdout.splitlines()]
        return {(name, int(size)): [float(s) for s in seconds] for name, size, *seconds in lines}

    competitors = [None, *o.builds]
    rounds = {c: [] for c in competitors}
    for i in range(o.rounds):
        for k in range(len(competitors)):  # who comes first changes
            competitor = competitors[(i + k) % len(competitors)]
            rounds[competitor].append(measured(competitor))

    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load "
          f"{os.getloadavg()[0]:.2f}, {o.ranks} ranks, {o.calls} calls, {o.rounds} rounds")
    ends = (o.calls // 100, o.calls // 10, o.calls)
    calls = [end - begin for begin, end in zip((0, *ends), ends)]
    ratios = {build: [] for build in o.builds}
    for kind in rounds[None][0]:
        def seconds(competitor, part, kind=kind):
            return statistics.median(r[kind][part] for r in rounds[competitor])

        alone = [seconds(None, part) for part in range(PARTS)]
        row = " ".join(f"{1e9 * s / n:8.0f}" for s, n in zip(alone, calls))
        for build in o.builds:
            ratio = [seconds(build, part) / alone[part] for part in range(PARTS)]
            ratios[build].append(ratio)
            row += " |" + "".join(f" {r:5.2f}" for r in ratio)
        print(f"{kind[0]:10} {kind[1]:5} B {row}")
    for build in o.builds:
        means = [math.exp(statistics.mean(math.log(r[part]) for r in ratios[build]))
                 for part in range(PARTS)]
        print(f"geometric mean, {build}: " + " ".join(f"{m:.3f}" for m in means))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What the summary says of programs whose gain is known: planted.cpp launched many times for each
planted gain, in turns.

    ninja -C BUILD worth_planted
    python3 bench/worth/planted.py BUILD [--gains 10,5,0,-3,-10] [--launches 20] [--calls 3000]
    python3 bench/worth/planted.py BUILD --gains 0 --launches 50 --calls 1000 --programs all

Counted is the summary's verdict on the whole run. Programs (planted.cpp) end each call in a collective
of the MPI library to which ranks come at different times.
"""

import argparse
import os
import platform
import re
import shlex
import subprocess
import sys

VERDICTS = ("faster", "slower", "cannot tell")
PROGRAMS = [f"{collective}/{late}" for collective in ("all_reduce", "broadcast", "gather", "all_to_all")
            for late in ("random", "one_late", "by_turns")]


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    options.add_argument("build", metavar="BUILD")
    options.add_argument("--gains", default="10,5,0,-3,-10", help="percent, in one list")
    options.add_argument("--launches", type=int, default=20)
    options.add_argument("--calls", type=int, default=3000)
    options.add_argument("--microseconds", type=int, default=200, help="of a call of the usual version")
    options.add_argument("--programs", default="", help="in one list, or all; default: no collective")
    options.add_argument("--ranks", type=int, default=2)
    options.add_argument("--mpiexec", default="mpiexec --bind-to core",
                         help="more ranks than cores need an MPI that yields when it is idle")
    o = options.parse_args()
    if o.launches < 1 or o.calls < 1 or o.microseconds < 1 or o.ranks < 1:
        options.error("expected at least 1 launch, 1 call, 1 us and 1 rank")
    try:
        gains = [float(g) for g in o.gains.split(",")]
    except ValueError:
        options.error(f"--gains {o.gains}: expected percentages, such as 10,0,-3")
    program = os.path.join(os.path.abspath(o.build), "bench/worth_planted")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RAILPASS")}
    environment.update(RAILPASS_SUMMARY="1", RAILPASS_KNOWLEDGE="off")

    def verdict(kind, gain, seed):
        done = subprocess.run([*shlex.split(o.mpiexec), "-n", str(o.ranks), program, str(gain),
                               str(o.calls), str(o.microseconds), *filter(None, [kind])],
                              env={**environment, "SEED": str(seed), "RAILPASS_SEED": str(seed)},
                              capture_output=True, text=True, timeout=600,
                              stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            sys.exit(f"{o.mpiexec} failed: {done.stderr}")
        said = re.search(rf"^railpass: ({'|'.join(VERDICTS)})", done.stderr, re.MULTILINE)
        if not said:
            sys.exit(f"no verdict in: {done.stderr}")
        return said[1]

    cells = [(p, g) for p in (PROGRAMS if o.programs == "all" else o.programs.split(",")) for g in gains]
    counts = {c: dict.fromkeys(VERDICTS, 0) for c in cells}
    for i in range(o.launches):
        for k in range(len(cells)):  # who comes first changes
            cell = cells[(i + k) % len(cells)]
            counts[cell][verdict(*cell, seed=i + 1)] += 1

    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load "
          f"{os.getloadavg()[0]:.2f}, {o.ranks} ranks, {o.calls} calls of {o.microseconds} us, "
          f"{o.launches} launches each")
    print("  program               planted  " + "  ".join(VERDICTS))
    for (p, g), found in counts.items():
        print(f"  {p or '-':20}  {g:+6.0f} %  " + "  ".join(f"{found[v]:{len(v)}d}" for v in VERDICTS))


if __name__ == "__main__":
    main()

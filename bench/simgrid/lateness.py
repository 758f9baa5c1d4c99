#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What railpass measures of calls to which ranks come late, against what they take without that.

    python3 bench/simgrid/lateness.py --build build/release --json lateness.json

In SMPI every rank comes late to every call by a random time of up to 0, 0.1, 0.3, 1, 3 or 10 calls
(of the fastest arm, if all come at once). The four numbers that a merge brings of a call are turned into
its time and its skew by include/railpass/select/lockstep/skew.hpp, as the leader does. Arms: native and those
predicted to be the fastest, one of each algorithm.

Per class and lateness: measured time over the true one, median and 10th and 90th percentile over
calls, arms, sizes and collectives; the same of the skew over how far apart the ranks came; and what
it costs to take the arm whose measured times have the lowest median, mean over the cells: against
the arm that is the fastest when all come at once, and against the one that then takes the least
from the last rank's coming to the last one's leaving (some arms lose less by late ranks than others).
"""
import argparse
import json
import os
import statistics
import sys
import tempfile

from machine import MACHINES, Failure, Machine, find_programs

CLASSES = {
    "all wait for all": ["all_reduce", "all_gather", "all_to_all", "reduce_scatter_block", "barrier"],
    "rooted": ["broadcast", "reduce", "gather", "scatter"],
    "prefixes": ["scan", "exscan"],
    "v-forms": ["all_gatherv", "all_to_allv", "reduce_scatter", "gatherv", "scatterv"],
}


def quantiles(values):
    ordered = sorted(values)
    return [ordered[int(q * (len(ordered) - 1))] for q in (0.1, 0.5, 0.9)]


def late_calls(machine, collective, size, options):
    families, names = set(), []
    for arm in machine.arms(collective, size, machine.samples_only):
        if arm.split("+")[0] not in families and len(names) < options.arms:
            families.add(arm.split("+")[0])
            names.append(arm)
    return machine.simulate("late", collective, size, options.calls, *names, timeout=900)


def loss_of_choice(calls, cost_s):
    """What the arm with the lowest measured median takes more than the fastest one."""
    chosen = min(calls, key=lambda c: quantiles(c["seconds"])[1])
    return cost_s(chosen) / min(map(cost_s, calls)) - 1


def since_last_s(c):
    return statistics.mean(c["since_last_came_s"])


def table(cells):
    print("class, lateness: measured / true (10 %, 90 %); of the skew; cost of choosing by it, "
          "against the fastest without lateness, and with it")
    for name, members in CLASSES.items():
        of_class = [c for c in cells if c["collective"] in members]
        for lateness in sorted({c["lateness"] for cell in of_class for c in cell["calls"]}):
            now = [[c for c in cell["calls"] if c["lateness"] == lateness] for cell in of_class]
            calls = [c for cell in now for c in cell]
            low, middle, high = quantiles([s / c["true_s"] for c in calls for s in c["seconds"]])
            skews = [s / a for c in calls for s, a in zip(c["skew_s"], c["came_apart_s"])
                     if a > 0.01 * c["true_s"]]
            text = "                   " if not skews else "{1:5.2f} ({0:.2f}, {2:.2f})".format(
                *quantiles(skews))
            costs = ""
            for cost_s in (lambda c: c["true_s"], since_last_s):
                losses = [100 * loss_of_choice(cell, cost_s) for cell in now]
                costs += f"{statistics.mean(losses):8.1f} % (most {max(losses):.0f} %)"
            print(f"{name:20s}{lateness:5.1f}{middle:8.3f} ({low:.3f}, {high:.3f})   {text}{costs}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, metavar="DIR", help="with railpass_cli")
    parser.add_argument("--platform", nargs="+", metavar="FILE",
                        default=[os.path.join(MACHINES, m) for m in ("gigabit.xml", "multicore.cpp")])
    parser.add_argument("--bytes", nargs="+", type=int, default=[1 << 10, 1 << 16])
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--arms", type=int, default=5)
    parser.add_argument("--json", metavar="FILE", help="where the results go")
    options = parser.parse_args()
    find_programs(options)
    cells = []
    with tempfile.TemporaryDirectory(prefix="railpass-lateness-") as work:
        for path in options.platform:
            machine = Machine(path, work, options)
            machine.write_profile(machine.simulate("samples"), [], machine.samples_only)
            for collective in (c for members in CLASSES.values() for c in members):
                for size in options.bytes if collective != "barrier" else [machine.ranks]:
                    try:
                        calls = late_calls(machine, collective, size, options)
                    except Failure as problem:
                        print(f"{machine.name}, {collective}, {size} bytes: left out: {problem}",
                              file=sys.stderr, flush=True)
                        continue
                    cells.append({"machine": machine.name, "collective": collective, "bytes": size,
                                  "calls": calls})
            if options.json:
                with open(options.json, "w") as file:
                    json.dump(cells, file)
    table(cells)


if __name__ == "__main__":
    try:
        main()
    except Failure as problem:
        sys.exit(f"lateness.py: {problem}")

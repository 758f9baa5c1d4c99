#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tuned calls while links of the machine get slower and recover, against arms that never change.

    python3 bench/simgrid/changing.py --build build/release --json changing.json

The library runs unmodified in SMPI. From one call on until another one, links are as slow as --slow
says: HOST,BANDWIDTH multiplies the bandwidth of the links of a host, or of all of them; `middle` is
the host of rank p/2, from which trees send on. All arms are timed in both worlds; always native and
always one arm are sums of these times, tuned calls are live, merges included. An arm change has been
found when the arms of 19 of 20 calls take at most 1.02 times as long as the best one then. With
--replays tuned calls are not live but replayed from these times, with noise, by regret_replay.
"""
import argparse
import contextlib
import json
import math
import os
import sys
import tempfile
import time

from machine import MACHINES, Failure, Machine, find_programs, program, run


def calls_until_found(taken_s, best_s, window=20):
    """From the first of `taken_s` on; None: not found."""
    good = [t <= 1.02 * best_s for t in taken_s]
    for i in range(len(good) - window + 1):
        if sum(good[i:i + window]) >= window - 1:
            return i
    return None


def both_worlds(machine, collective, size, slow, seconds):
    """What each arm takes on the usual links, and merges there; and on slow ones."""
    path = os.path.join(machine.work, f"{machine.name}.{collective}.{size}.{slow}.json")
    if not os.path.exists(path):
        names = machine.arms(collective, size, machine.profile)
        worlds = [machine.times(collective, size, names, seconds, slow=s) for s in (None, slow)]
        with open(path + ".new", "w") as file:
            json.dump(worlds, file)
        os.replace(file.name, path)
    with open(path) as file:
        found = json.load(file)
    if not all("arms" in world for world in found):
        raise Failure(f"{path}: expected the times of arms in two worlds, each with \"arms\"; "
                      "without this file they are measured again")
    return found


def live(machine, collective, size, slow, options, worlds):
    """Seconds of each part, its last arm, and after how many calls its best arm was found."""
    n = options.calls
    ran = machine.simulate("live", collective, size, 3 * n, n, 2 * n, slow=slow, timeout=1800,
                           environment={"RAILPASS_PROFILE": machine.profile})
    if not ran["right"]:
        raise Failure(f"{machine.name}, {collective}, {size} bytes: wrong data")
    parts = []
    for i, world in enumerate(worlds):
        of_part = range(i * n, (i + 1) * n)
        taken = [world.get(ran["arms"][c], ran["seconds"][c]) for c in of_part]
        parts.append({"tuned_s": sum(ran["seconds"][c] for c in of_part),
                      "last_arm": ran["arms"][of_part[-1]],
                      "calls_until_found": calls_until_found(taken, min(world.values()))})
    return parts


def replayed(machine, collective, size, options, found, worlds):
    """Seconds of each part, means over the replays; of the arms that were timed in both worlds."""
    usual, slowed, _ = worlds
    arms, slow = ([{"arm": a, "seconds": world[a]} for a in usual if a in slowed]
                  for world in (usual, slowed))
    cell = {"collective": collective, "bytes": size, "ranks": machine.ranks,
            "ranks_per_node": machine.ranks_per_node, "arms": arms, "slow": slow,
            **{k: found[k] for k in ("merge", "merge_at_once", "first_plan_s")}}
    with tempfile.NamedTemporaryFile("w", dir=machine.work, suffix=".json") as file:
        json.dump({"cells": [cell]}, file)
        file.flush()
        said = run([program(os.path.abspath(options.build), "bench/regret_replay"), "changing",
                    machine.profile, file.name, options.replays, options.noise, options.calls], 600)
    return [{"tuned_s": s} for s in json.loads(said)["results"][0]["tuned_s"]]


def study(machine, collective, size, options):
    slow = options.slow.replace("middle", f"n-{machine.ranks // 2 // machine.ranks_per_node}")
    found = both_worlds(machine, collective, size, slow, options.cell_seconds)
    usual, slowed = ({a["arm"]: a["seconds"] for a in f["arms"]} for f in found)
    worlds = usual, slowed, usual
    n = options.calls
    began = time.monotonic()
    if options.replays:
        tuned = replayed(machine, collective, size, options, found[0], worlds)
    else:
        tuned = live(machine, collective, size, slow, options, worlds)
    phases = []
    for world, part in zip(worlds, tuned):
        best = min(world, key=world.get)
        phases.append({"best_arm": best, "best_arm_s": world[best], "native_s": world["native"],
                       **part})
    both = usual.keys() & slowed.keys()
    always = {a: n * (2 * usual[a] + slowed[a]) for a in both}
    best_fixed = min(always, key=always.get)
    return {"machine": machine.name, "ranks": machine.ranks, "collective": collective, "bytes": size,
            "slow": slow, "calls_of_a_phase": n, "arms": len(both), "phases": phases,
            "tuned_s": sum(p["tuned_s"] for p in phases), "native_s": always["native"],
            "best_fixed_arm": best_fixed, "best_fixed_arm_s": always[best_fixed],
            "median_fixed_arm_s": sorted(always.values())[len(always) // 2],
            "best_of_each_phase_s": sum(n * p["best_arm_s"] for p in phases),
            "real_s": time.monotonic() - began}


def summary(results):
    """Geometric means over the cells."""
    def mean(ratio):
        return math.exp(sum(math.log(ratio(r)) for r in results) / len(results))
    parts = [mean(lambda r: r["phases"][i]["tuned_s"] / r["calls_of_a_phase"]
                  / r["phases"][i]["best_arm_s"]) for i in range(3)]
    return (f"{len(results)} cells: each part / its best arm "
            + ", ".join(f"{p:.3f}" for p in parts)
            + f"; all / native {mean(lambda r: r['tuned_s'] / r['native_s']):.3f}, / best fixed arm "
            f"{mean(lambda r: r['tuned_s'] / r['best_fixed_arm_s']):.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, metavar="DIR", help="with railpass_cli")
    parser.add_argument("--platform", nargs="+", metavar="FILE",
                        default=[os.path.join(MACHINES, m)
                                 for m in ("gigabit.xml", "infiniband.xml", "multicore.cpp")])
    parser.add_argument("--collectives", nargs="+", default=["broadcast", "all_reduce"])
    parser.add_argument("--bytes", nargs="+", type=int, default=[1 << 10, 1 << 16])
    parser.add_argument("--slow", default="middle,0.1", metavar="HOST,BANDWIDTH")
    parser.add_argument("--calls", type=int, default=1000, help="before, while and after it is slow")
    parser.add_argument("--replays", type=int, default=0, metavar="N",
                        help="so many replays of each cell instead of live calls")
    parser.add_argument("--noise", type=float, default=0.05,
                        help="of a replayed call: standard deviation of ln(measured / true)")
    parser.add_argument("--cell-seconds", type=float, default=60,
                        help="real time for the arms of a cell, in each world")
    parser.add_argument("--keep", metavar="DIR", help="profiles and times of arms stay there; those "
                        "that are there are not measured again")
    parser.add_argument("--json", metavar="FILE", help="where the results go")
    options = parser.parse_args()
    if options.calls < 1 or options.replays < 0 or options.noise < 0:
        parser.error("expected at least one call, and neither --replays nor --noise below 0")
    find_programs(options)
    results = []
    with contextlib.ExitStack() as stack:
        work = options.keep or stack.enter_context(
            tempfile.TemporaryDirectory(prefix="railpass-changing-"))
        os.makedirs(work, exist_ok=True)
        for path in options.platform:
            machine = Machine(path, work, options)
            cells = [(c, b) for c in options.collectives for b in options.bytes]
            if not os.path.exists(machine.profile):
                machine.fit(cells)
            for cell in cells:
                try:
                    r = study(machine, *cell, options)
                except Failure as problem:
                    print(f"{machine.name}, {cell[0]}, {cell[1]} bytes: left out: {problem}",
                          file=sys.stderr, flush=True)
                    continue
                results.append(r)
                found = [p.get("calls_until_found") for p in r["phases"]]
                print(f"{r['machine']}, {r['collective']}, {r['bytes']} bytes: best "
                      + " -> ".join(f"{p['best_arm']} {1e6 * p['best_arm_s']:.1f} us"
                                    for p in r["phases"][:2])
                      + ("; " if options.replays else f"; found after {found} calls; ")
                      + "each part / its best arm "
                      + ", ".join(f"{p['tuned_s'] / options.calls / p['best_arm_s']:.3f}"
                                  for p in r["phases"]) + "; tuned / native "
                      f"{r['tuned_s'] / r['native_s']:.3f}, / best fixed arm "
                      f"{r['tuned_s'] / r['best_fixed_arm_s']:.3f} ({r['best_fixed_arm']}), / best "
                      f"of each phase {r['tuned_s'] / r['best_of_each_phase_s']:.3f}; "
                      f"{r['real_s']:.0f} s", flush=True)
                if options.json:
                    with open(options.json, "w") as file:
                        json.dump(results, file, indent=1)
    if results:
        print(summary(results))


if __name__ == "__main__":
    try:
        main()
    except Failure as problem:
        sys.exit(f"changing.py: {problem}")

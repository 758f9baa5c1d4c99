#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Collectives of the ranks of one node by several MPI libraries, with and without railpass.

    mpicc.openmpi -O2 -o one_node.openmpi bench/field/one_node.c
    mpicc.mpich -O2 -o one_node.mpich bench/field/one_node.c
    python3 bench/field/one_node.py --launches 5 --json one_node.json \\
        --way "Open MPI: mpirun -np 2 ./one_node.openmpi 20 50" \\
        --way "railpass: mpirun -np 2 -x LD_PRELOAD=build/release/lib/librailpass_preload.so \\
               -x RAILPASS_KNOWLEDGE=off ./one_node.openmpi 250 50" \\
        --way "MPICH: mpirun.mpich -np 2 ./one_node.mpich 20 50"

Each way is a label and the command that starts the program with some MPI library (its ABI's: Intel
MPI runs MPICH's program), up to the program's first two arguments: the milliseconds that each cell
may take before it is measured, which those need that tune, and those of the measurement. They take
turns, launch by launch. A cell of the table is the median over the launches of the median call, and
what it is of the first way's in the same launch; the last line has the geometric mean of those.
"""
import argparse
import json
import math
import os
import platform
import shlex
import statistics
import subprocess
import sys

from field import size

COLLECTIVES = ("broadcast", "reduce", "all_reduce", "gather", "scatter", "all_gather", "all_to_all")
BYTES = (8, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304)


def cells_of(collectives, sizes):
    return [f"{c}:{0 if c == 'barrier' else b}" for c in collectives
            for b in (sizes[:1] if c == "barrier" else sizes)]


def measured(way, options):
    label, command = way
    words = [*shlex.split(command), *cells_of(options.collectives, options.bytes)]
    try:
        ran = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=options.timeout,
                             stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as why:
        sys.exit(f"one_node: {label}: {why}")
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    if ran.returncode != 0 or not lines:
        sys.exit(f"one_node: {label} ended with {ran.returncode}:\n{ran.stdout}")
    return {(line["collective"], line["bytes"]): line for line in lines}


def time(seconds):
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1 or unit == "us":
            return f"{seconds * factor:.3g} {unit}"


def table(launches, labels):
    first = labels[0]
    lines = [f"| | bytes | {first} |" + "".join(f" {label} | |" for label in labels[1:]),
             "|" + "---|" * (3 + 2 * (len(labels) - 1))]
    ratios = {label: [] for label in labels}
    last = None
    for cell in launches[0][first]:
        of = {label: [launch[label][cell]["median_s"] for launch in launches] for label in labels}
        row = f"| {cell[0] if cell[0] != last else ''} | {size(cell[1]) if cell[1] else ''} | {time(statistics.median(of[first]))} |"
        for label in labels[1:]:
            each = [a / b for a, b in zip(of[label], of[first])]
            ratios[label].append(statistics.median(each))
            row += (f" {time(statistics.median(of[label]))} | {statistics.median(each):.2f}"
                    + (f" ({min(each):.2f} to {max(each):.2f})" if len(each) > 1 else "") + " |")
        lines.append(row)
        last = cell[0]
    means = "".join(
        f" | {math.exp(statistics.fmean(map(math.log, ratios[label]))):.2f} |" for label in labels[1:])
    lines.append("| geometric mean | | |" + means)
    return "\n".join(lines)


def positive(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}': expected a number above 0")
    return int(text)


def way(text):
    label, colon, command = text.partition(":")
    if not colon or not command.strip():
        raise argparse.ArgumentTypeError(f"'{text}': expected a label, a colon and a command")
    return label.strip(), command


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--way", type=way, action="append", required=True, metavar="LABEL:COMMAND")
    parser.add_argument("--collectives", type=lambda t: t.split(","), default=[*COLLECTIVES, "barrier"])
    parser.add_argument("--bytes", type=lambda t: [int(b) for b in t.split(",")], default=list(BYTES))
    parser.add_argument("--launches", type=positive, default=5)
    parser.add_argument("--timeout", type=float, default=600, help="of a launch, in seconds")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    labels = [label for label, _ in options.way]
    launches = []
    for n in range(options.launches):
        turns = options.way if n % 2 == 0 else options.way[::-1]
        launches.append({w[0]: measured(w, options) for w in turns})
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump({"cores": os.cpu_count(), "kernel": platform.release(),
                       "ways": dict(options.way),
                       "launches": [{label: list(cells.values()) for label, cells in launch.items()}
                                    for launch in launches]}, out, indent=1)
            out.write("\n")
    cells = next(iter(launches[0].values()))
    ranks = next(iter(cells.values()))["ranks"]
    print(f"{ranks} ranks, {os.cpu_count()} cores, {len(launches)} launches\n\n{table(launches, labels)}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Prints what `railpass bench --json` wrote as the Markdown table of docs/collectives.md.

    mpirun -n 2 railpass bench --collectives all --bytes 8,1KiB,64KiB,1MiB --json bench.json
    python3 bench/collectives/table.py bench.json
"""
import argparse
import json
import math
import statistics


def seconds(value):
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if value * factor >= 1:
            break
    digits = max(0, 2 - math.floor(math.log10(value * factor)))
    return f"{value * factor:.{digits}f} {unit}"


def size(number):
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number % factor == 0 and number:
            return f"{number // factor} {unit}"
    return f"{number} B"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="what railpass bench --json wrote; of a cell that "
                        "several measured the last one counts")
    runs = []
    cells = {}
    for path in parser.parse_args().files:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        runs.append(found["environment"])
        fresh = {}
        for row in found["results"]:
            fresh.setdefault((row["collective"], row["bytes"]), {})[row["arm"]] = row
        cells.update(fresh)

    lines, wins, slower = [], [], []
    for (collective, length), arms in cells.items():
        native, tuned = arms.pop("native"), arms.pop("tuned")
        if not arms:
            continue
        best = min(arms.values(), key=lambda row: row["median_s"])
        gain = native["median_s"] / best["median_s"]
        # The best of many is best by luck, too: the whole interval must say so.
        if best["ratio_high"] < 1 / 1.05:
            wins.append(gain)
        ratio = tuned["ratio_to_native"]
        # The promise: not slower by more than max(2 %, 100 ns), as far as the noise tells.
        allowed = 1 + max(0.02, 100e-9 / native["median_s"])
        certainly = tuned["ratio_low"] > allowed
        if certainly:
            slower.append(ratio)
        cell = "" if collective == "barrier" else size(length)
        lines.append(
            f"| {collective} | {cell} | {seconds(native['median_s'])} | `{best['arm']}` | "
            f"{seconds(best['median_s'])} | {gain:.2f} | {seconds(tuned['median_s'])} | "
            f"{ratio:.3f} ({tuned['ratio_low']:.3f}..{tuned['ratio_high']:.3f})"
            f"{' !' if certainly else ''} | {native['spread_s'] / native['median_s']:.0%} |")

    environment = runs[0]
    print(f"{environment['num_ranks']} ranks, {environment['ranks_per_node']} per node, "
          f"{environment['machine_id']['mpi_library'].split(',')[0]}, "
          f"{environment['machine_id']['cpu_model']}, "
          f"{', '.join(run['measured_at'] for run in runs)}.\n")
    print("| collective | message | native | best arm of ours | its median | native / it | tuned | "
          "tuned / native (95 %) | noise |")
    print("|---|--:|--:|---|--:|--:|--:|--:|--:|")
    print("\n".join(lines))
    print(f"\nAn arm of ours is faster than the MPI library's own by more than 5 % (the whole "
          f"interval of the ratio) in {len(wins)} of "
          f"{len(lines)} cells" +
          (f", by a factor of {statistics.median(wins):.2f} in the median and {max(wins):.2f} at "
           "most" if wins else "") + ". ", end="")
    print(f"The tuned call is slower than native beyond max(2 %, 100 ns) and noise in {len(slower)} "
          "of them" + (f" (at most {max(slower):.2f} times)" if slower else "") + ".")


if __name__ == "__main__":
    main()

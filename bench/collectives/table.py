#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Prints what `railpass bench --json` wrote as the Markdown table of docs/measurements/collectives.md.

    mpirun -n 2 railpass bench --collectives all --bytes 8,1KiB,64KiB,1MiB --json bench.json
    python3 bench/collectives/table.py bench.json

With `--learning 1000` there is a column more: the first 100 calls of a context and those up to the
1000th over as many of native, by geometric means.
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


def holds(low, high, other_s):
    """The promise of a settled call, as railpass bench has it: the whole 95 % interval of its time
    over the other's is below 1 + the largest of 2 %, 100 ns and three standard errors."""
    return high < 1 + max(0.02, 100e-9 / other_s, 3 * (high - low) / (2 * 1.96))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="what railpass bench --json wrote; of a cell that "
                        "several measured the last one counts")
    runs = []
    cells = {}
    learnt = {}
    for path in parser.parse_args().files:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        runs.append(found["environment"])
        fresh = {}
        for row in found["results"]:
            fresh.setdefault((row["collective"], row["bytes"]), {})[row["arm"]] = row
        cells.update(fresh)
        for cell in fresh:
            learnt[cell] = [part for part in found["learning"]
                            if (part["collective"], part["bytes"]) == cell]

    learns = any(learnt.values())
    lines, wins, behind_native, behind_best = [], [], [], []
    order = list(dict.fromkeys(collective for collective, _ in cells))
    for (collective, length), arms in sorted(cells.items(),
                                             key=lambda c: (order.index(c[0][0]), c[0][1])):
        native, tuned = arms.pop("native"), arms.pop("tuned")
        if not arms:
            continue
        best = min(arms.values(), key=lambda row: row["median_s"])
        gain = native["median_s"] / best["median_s"]
        # The best of many is best by luck, too: the whole interval must say so.
        if best.get("ratio_high", math.inf) < 1 / 1.05:
            wins.append(gain)
        ratio, to_best = tuned["ratio_to_native"], tuned["ratio_to_best"]
        # Too few repetitions tell no interval.
        low, high = tuned.get("ratio_low", 0), tuned.get("ratio_high", math.inf)
        no_slower = holds(low, high, native["median_s"])
        near_best = holds(tuned.get("best_low", 0), tuned.get("best_high", math.inf), tuned["median_s"] / to_best)
        if not no_slower:
            behind_native.append(ratio)
        if not near_best:
            behind_best.append(to_best)
        cell = "" if collective == "barrier" else size(length)
        first = ", ".join(f"{part['ratio_to_native']:.3f}" for part in learnt[collective, length])
        lines.append(
            f"| {collective} | {cell} | {seconds(native['median_s'])} | `{best['arm']}` | "
            f"{seconds(best['median_s'])} | {gain:.2f} | {seconds(tuned['median_s'])} | "
            f"{ratio:.3f} ({low:.3f}..{high:.3f})"
            f"{'' if no_slower else ' !'} | {to_best:.3f}{'' if near_best else ' !'} | " +
            f"{first} | " * learns + f"{native['spread_s'] / native['median_s']:.0%} |")

    environment = runs[0]
    print(f"{environment['num_ranks']} ranks, {environment['ranks_per_node']} per node, "
          f"{environment['machine_id']['mpi_library'].split(',')[0]}, "
          f"{environment['machine_id']['cpu_model']}, "
          f"{', '.join(run['measured_at'] for run in runs)}.\n")
    print("| collective | message | native | best arm of ours | its median | native / it | tuned | "
          "tuned / native (95 %) | / best |" + " first calls |" * learns + " noise |")
    print("|---|--:|--:|---|--:|--:|--:|--:|--:|" + "--:|" * learns + "--:|")
    print("\n".join(lines))
    print(f"\nAn arm of ours is faster than the MPI library's own by more than 5 % (the whole "
          f"interval of the ratio) in {len(wins)} of "
          f"{len(lines)} cells" +
          (f", by a factor of {statistics.median(wins):.2f} in the median and {max(wins):.2f} at "
           "most" if wins else "") + ". ", end="")
    for whom, behind in (("native", behind_native), ("the best arm", behind_best)):
        print(f"The tuned call is not shown to be as fast as {whom} in {len(behind)} of them" +
              (f" (at most {max(behind):.2f} times its time)" if behind else "") + ". ", end="")
    print()


if __name__ == "__main__":
    main()

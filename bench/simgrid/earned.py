# SPDX-License-Identifier: BSL-1.0
"""Which algorithms earn their place, on recorded times of arms.

    bench/regret --build build/release --keep DIR ...
    python3 bench/simgrid/earned.py DIR --record gigabit torus --collectives scatter --bytes 1024 65536
    python3 bench/simgrid/earned.py DIR [BENCH.json ...]

With --record: times the arms of further cells on these machines, by a profile from samples alone.
Otherwise reads the cells (machine, collective, size) that bench/regret and --record have kept in DIR,
and files that `railpass bench` has written. For each algorithm: in how many of the cells that timed it
the algorithm is the best, what the best of the others costs there in the mean, and how close the
algorithm ever comes to the best. An algorithm that never comes within 2 % has not earned its place.
Arms that the model predicts to be far slower than its best were not timed: such cells count neither for
nor against an algorithm. Prints the table as Markdown.
"""
import argparse
import collections
import glob
import json
import os
import sys

import machine

CLOSE = 1.02
NATIVE = "native"  # is always there


def recorded(name, options):
    """The cells of one machine, each as far as --cell-seconds of real time reach."""
    paths = [os.path.join(machine.MACHINES, name + ending) for ending in (".xml", ".cpp")]
    m = machine.Machine(next((p for p in paths if os.path.exists(p)), paths[0]), options.folder, options)
    if not os.path.exists(m.samples_only):
        samples = m.simulate("samples", hosts=m.sampling_hosts)
        samples["machine_id"]["num_hosts"] = len(set(m.hosts))
        m.write_profile(samples, [], m.samples_only)
    for collective in options.collectives:
        for size in options.bytes:
            try:
                timed = m.times(collective, size, m.arms(collective, size, m.samples_only),
                                options.cell_seconds)
            except machine.Failure as problem:
                print(f"{name}: left out: {problem}", file=sys.stderr, flush=True)
                continue
            yield {"collective": collective, "bytes": size, "arms": timed["arms"]}


def record(options):
    """Adds to DIR/NAME.earned.cells.json of each machine; a cell that is there is timed again."""
    machine.find_programs(options)
    for name in options.record:
        path = os.path.join(options.folder, name + ".earned.cells.json")
        cells = {}
        if os.path.exists(path):
            with open(path) as file:
                cells = {(c["collective"], c["bytes"]): c for c in json.load(file)["cells"]}
        for cell in recorded(name, options):
            cells[cell["collective"], cell["bytes"]] = cell
            with open(path, "w") as file:
                json.dump({"cells": list(cells.values())}, file)


def kept_cells(folder):
    for path in sorted(glob.glob(os.path.join(folder, "*.cells.json"))):
        with open(path) as file:
            for cell in json.load(file)["cells"]:
                yield cell["collective"], {a["arm"]: a["seconds"] for a in cell["arms"]}


def bench_cells(path):
    with open(path) as file:
        content = json.load(file)
    if content.get("format") != "railpass bench":
        sys.exit(f'{path}: expected "format": "railpass bench"')
    cells = collections.defaultdict(dict)
    for result in content["results"]:
        if result["arm"] == "tuned" or result["arm"].startswith("native:"):
            continue
        cells[result["collective"], result["bytes"]][result["arm"]] = result["median_s"]
    for (collective, _), arms in sorted(cells.items()):
        yield collective, arms


def best_by_algorithm(arms):
    best = {}
    for arm, seconds in arms.items():
        name = arm.split("+")[0]
        best[name] = min(seconds, best.get(name, seconds))
    return best


def rows_of(cells):
    """By collective and algorithm: cells, cells in which it is the best, sum of what the best of the others
    costs there, and the least ratio to the best."""
    rows = {}
    for collective, arms in cells:
        best = best_by_algorithm(arms)
        if len(best) < 2:
            continue
        for name, seconds in best.items():
            others = min(s for other, s in best.items() if other != name)
            row = rows.setdefault((collective, name), {"cells": 0, "best": 0, "without": 0.0,
                                                       "closest": float("inf")})
            row["cells"] += 1
            row["closest"] = min(row["closest"], max(1.0, seconds / others))
            if seconds <= others:
                row["best"] += 1
                row["without"] += others / seconds - 1
    return rows


def line_of(collective, name, row):
    without = f"+{100 * row['without'] / row['best']:.1f} %" if row["best"] else ""
    verdict = "" if row["closest"] <= CLOSE or name == NATIVE else "never within 2 %"
    return (f"| {collective} | `{name}` | {row['cells']} | {row['best']} | {without} | "
            f"{row['closest']:.2f} | {verdict} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", help="of bench/regret --keep and of --record")
    parser.add_argument("benches", metavar="BENCH.json", nargs="*", help="of railpass bench")
    parser.add_argument("--record", metavar="MACHINE", nargs="+", help="files in bench/simgrid/machines")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--collectives", nargs="+", default=[])
    parser.add_argument("--bytes", nargs="+", type=int, default=[])
    parser.add_argument("--cell-seconds", type=float, default=20, help="real time for each cell")
    options = parser.parse_args()
    if options.record:
        try:
            record(options)
        except machine.Failure as problem:
            sys.exit(f"earned.py: {problem}")
        return
    cells = list(kept_cells(options.folder))
    for path in options.benches:
        cells += bench_cells(path)
    if not cells:
        sys.exit(f"{options.folder}: expected files *.cells.json, as bench/regret --keep writes them")
    print("| collective | algorithm | cells | best in | the best of the others there | closest | |")
    print("|---|---|--:|--:|--:|--:|---|")
    for (collective, name), row in sorted(rows_of(cells).items()):
        print(line_of(collective, name, row))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSL-1.0
"""What knowledge of other sizes, and of other collectives, is worth: on times that `railpass bench`
measured.

    railpass fit tests/data/samples_2_hosts_200mbit.json -o profile.json
    python3 bench/simgrid/elsewhere.py build/release tests/data/bench_8_hosts_200mbit.json profile.json

Each arm takes its median; a run of 1000 calls begins with what one of another size (up to three octaves
away), or of another collective at the same size, has learnt. Without PROFILE the predictions are those
of a common cluster. Time over the best arm's, beside that of the same run that knows nothing.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

# Of merges nothing is known from a bench: as on eight hosts on gigabit Ethernet.
MERGE, MERGE_AT_ONCE = ({"adds_s": s, "charged_s": s} for s in (50e-6, 300e-6))


def cells_of(bench):
    cells = {}
    for r in bench["results"]:
        if r["arm"] == "tuned":
            continue
        cell = cells.setdefault((r["collective"], r["bytes"]), {
            "collective": r["collective"], "bytes": r["bytes"],
            "ranks": bench["environment"]["num_ranks"],
            "ranks_per_node": bench["environment"]["ranks_per_node"], "merge": MERGE,
            "merge_at_once": MERGE_AT_ONCE, "first_plan_s": 0, "arms": []})
        cell["arms"].append({"arm": r["arm"], "seconds": r["median_s"]})
    return list(cells.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="with regret_replay")
    parser.add_argument("bench", help="results of railpass bench with all arms")
    parser.add_argument("profile", nargs="?", default="-")
    parser.add_argument("--seeds", type=int, default=20)
    o = parser.parse_args()
    with open(o.bench, encoding="utf-8") as file:
        cells = cells_of(json.load(file))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cells.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"cells": cells}, file)
        replay = os.path.join(o.build, "bench", "regret_replay")
        found = json.loads(subprocess.run(
            [replay, "elsewhere", o.profile, path, path, str(o.seeds), "0.1", "1000"],
            capture_output=True, text=True, check=True).stdout)["results"]
    for what, wanted in (("other sizes", lambda r: r["from"]["collective"] == r["collective"]),
                         ("other collectives", lambda r: r["from"]["collective"] != r["collective"])):
        for calls in (30, 100, 1000):
            some = [r for r in found if r["calls"] == calls and wanted(r)]
            if not some:
                continue
            knowing, ignorant = ([r[k] for r in some] for k in ("ratio_to_best_arm", "ignorant"))
            gains = [k / i for k, i in zip(knowing, ignorant)]
            print(f"{what}, {calls:4d} calls: {statistics.mean(knowing):.3f} with, "
                  f"{statistics.mean(ignorant):.3f} without; ratio {statistics.median(gains):.3f} in the "
                  f"median ({min(gains):.2f} .. {max(gains):.2f}), better in {sum(g < 1 for g in gains)} of "
                  f"{len(gains)}")


main()

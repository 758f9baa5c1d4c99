# SPDX-License-Identifier: BSL-1.0
"""What arms cost while the default policy learns, and what they gain, on kept times of arms.

    bench/regret --build build/release --quick --live 0 --keep DIR
    python3 bench/simgrid/without.py DIR --arms '*:bine' '*:*dimensions=3' 'all_to_allv:bruck*'

Plays the cells that bench/regret has kept in DIR as they are, and with the same seeds without the arms
whose COLLECTIVE:ARM matches one of the patterns; the profile is then fitted without their times, too.
Prints as Markdown, for each row of the default policy in bench/regret, how much longer the calls take
with the arms than without: the mean over the cells and its standard error. Beyond the best arm: the
time over that of the best arm in hindsight, which may be one of these arms, in percent of the latter.
Then, in the geometric mean over the cells, how many times as long as the best arm, and as 1000 calls
of the default policy, the best choice of the MPI libraries takes.
"""
import argparse
import concurrent.futures
import fnmatch
import glob
import json
import math
import os
import sys
import tempfile

import machine
from ablation import difference

NOISE = 0.1
CALLS = 1000  # of the policy beside the libraries


def is_left_out(collective, arm, patterns):
    return any(fnmatch.fnmatchcase(f"{collective}:{arm}", p) for p in patterns)


def read(path):
    with open(path) as file:
        return json.load(file)


def write(path, content):
    with open(path, "w") as file:
        json.dump(content, file)
    return path


class Kept:
    """The files of one machine in a folder."""

    def __init__(self, folder, name):
        self.name, self.base = name, os.path.join(folder, name)
        self.cells, self.profile = self.base + ".cells.json", self.base + ".profile.json"
        self.samples_only = self.base + ".samples-only.json"

    def without(self, folder, patterns, options):
        """The same in another folder, without these arms."""
        other = Kept(folder, self.name)
        content = read(self.cells)
        for cell in content["cells"]:
            cell["arms"] = [a for a in cell["arms"] if not is_left_out(cell["collective"], a["arm"], patterns)]
        write(other.cells, content)
        bench = read(self.base + ".profile.bench.json")
        bench["results"] = [r for r in bench["results"] if not is_left_out(r["collective"], r["arm"], patterns)]
        machine.run([options.railpass, "fit", self.base + ".profile.samples.json",
                     write(other.base + ".profile.bench.json", bench), "-o", other.profile], 120)
        write(other.samples_only, read(self.samples_only))
        return other

    def played(self, options):
        """What regret_replay says of the default policy: {(row, calls): {cell: result}}."""
        output = json.loads(machine.run([options.replay, "default", self.profile, self.samples_only, self.cells,
                                         options.seeds, NOISE], 3600))
        rows = {}
        for r in output["results"]:
            cell = self.name, r["collective"], r["bytes"]
            rows.setdefault((r["policy"], r["calls"]), {})[cell] = r
        return rows

    def best_of_libraries(self):
        """Seconds, by cell."""
        best = {}
        for p in read(self.cells).get("peers", []):
            cell = self.name, p["collective"], p["bytes"]
            if p["seconds"]:
                best[cell] = min(p["seconds"], best.get(cell, math.inf))
        return best


def united(of_machines):
    rows = {}
    for machine_rows in of_machines:
        for row, cells in machine_rows.items():
            rows.setdefault(row, {}).update(cells)
    return rows


def line_of(row, kept, without):
    """Of a policy and a number of calls."""
    longer = {c: 100 * kept[c]["total_s"] / without[c]["total_s"] for c in kept}
    beyond = [{c: 100 * r["ratio_to_best_arm"] for c, r in cells.items()} for cells in (without, kept)]
    pairs = [difference(dict.fromkeys(longer, 100), longer), difference(*beyond)]
    policy, calls = row
    return f"| {policy} | {calls} | " + " | ".join(f"{mean:+.2f} ({error:.2f})" for mean, error in pairs) + " |"


def gains(libraries, rows):
    """Over the best arm, and over the calls of the default policy."""
    cells = {c: r for c, r in rows["default", CALLS].items() if c in libraries}
    return [math.exp(sum(math.log(libraries[c] * r["calls"] / r[what]) for c, r in cells.items()) / len(cells))
            for what in ("best_arm_s", "total_s")]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", help="of bench/regret --keep")
    parser.add_argument("--arms", metavar="PATTERN", nargs="+", required=True, help="COLLECTIVE:ARM with *")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--seeds", type=int, default=24)
    options = parser.parse_args()
    suffix = ".profile.json"
    names = sorted(os.path.basename(p)[:-len(suffix)] for p in glob.glob(os.path.join(options.folder, "*" + suffix)))
    if not names:
        sys.exit(f"{options.folder}: expected files *{suffix}, as bench/regret --keep writes them")
    try:
        build = os.path.abspath(options.build)
        options.railpass = machine.program(build, "lib/cli/railpass", "railpass")
        options.replay = machine.program(build, "bench/regret_replay")
        with tempfile.TemporaryDirectory() as folder:
            all_arms = [Kept(options.folder, name) for name in names]
            fewer = [m.without(folder, options.arms, options) for m in all_arms]
            with concurrent.futures.ThreadPoolExecutor() as pool:
                played = list(pool.map(lambda m: m.played(options), all_arms + fewer))
            kept, without = united(played[:len(names)]), united(played[len(names):])
    except machine.Failure as problem:
        sys.exit(f"without.py: {problem}")
    print(f"{len(kept['default', CALLS])} cells, {options.seeds} seeds\n")
    print("| policy | calls | longer, % (standard error) | beyond the best arm, % (standard error) |")
    print("|---|--:|--:|--:|")
    for row in kept:
        print(line_of(row, kept[row], without[row]))
    libraries = {cell: s for m in all_arms for cell, s in m.best_of_libraries().items()}
    if libraries:
        print("\n| best of the libraries over | with | without |\n|---|--:|--:|")
        for what, *both in zip(("the best arm", f"{CALLS} calls"), gains(libraries, kept), gains(libraries, without)):
            print(f"| {what} | " + " | ".join(f"{gain:.3f}" for gain in both) + " |")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSL-1.0
"""What it brings on nodes of many ranks that arms know nodes, on machines that SMPI simulates.

    python3 bench/simgrid/nodes.py --build build/release [--machine nodes8x16]

For each collective and size: the MPI library's own (SMPI's ompi), and of each kind the fastest of the
arms that are predicted to be the fastest: flat ones, composed of levels, and those in which all ranks of
a node drive their share of the network. Prints the table as Markdown.
"""
import argparse
import json
import os
import sys
import tempfile

import machine

SIZES = [64, 4 << 10, 64 << 10, 1 << 20]
# Of blocks all ranks' together.
COLLECTIVES = {"broadcast": SIZES, "reduce": SIZES, "all_reduce": SIZES, "all_gather": SIZES[1:],
               "gather": SIZES[1:], "scatter": SIZES[1:], "all_to_all": SIZES[1:], "barrier": [1]}
ARMS_OF_A_KIND = 3
KINDS = ["flat", "composed", "full-lane"]


def size_text(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)


def time_text(seconds):
    for unit, name in ((1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e9:.3g} ns"


def kinds_of_algorithms(options):
    """By collective and algorithm; of some the parameters say it. None: SMPI cannot run it, as its ranks
    share no memory."""
    def kind(needs):
        if any("shared" in need or need == "single copies" for need in needs):
            return None
        return "composed" if any(need.startswith("several nodes") for need in needs) else "flat"

    said = json.loads(machine.run([options.railpass, "algorithms", "--json", "-"], 60))
    return {(a["collective"], a["name"]): kind(a["needs"]) for a in said}


def kind_of(collective, arm, known):
    kind = known[collective, arm.split("+")[0]]
    return "full-lane" if kind and ("lanes" in arm or "leaders=0" in arm) else kind


def row_of(m, known, collective, size, seconds):
    some = {kind: [] for kind in KINDS}
    for predicted in m.predicted(collective, size, m.samples_only):
        kind = kind_of(collective, predicted["arm"], known)
        if kind and len(some[kind]) < ARMS_OF_A_KIND:
            some[kind].append(predicted["arm"])
    # The MPI library's own last: it may take all the time.
    timed = m.times(collective, size, [*sum(some.values(), []), "native"], seconds)["arms"]
    by_arm = {a["arm"]: a["seconds"] for a in timed}
    row = {"collective": collective, "bytes": size, "native_s": by_arm.pop("native", None)}
    for kind in KINDS:
        found = [(s, arm) for arm, s in by_arm.items() if kind_of(collective, arm, known) == kind]
        row[kind] = min(found) if found else None
    return row


def line_of(row):
    cells = [row["collective"], "" if row["collective"] == "barrier" else size_text(row["bytes"]),
             time_text(row["native_s"]) if row["native_s"] else "-"]
    for kind in KINDS:
        cells += [time_text(row[kind][0]), f"`{row[kind][1]}`"] if row[kind] else ["-", "-"]
    best_s = min(row[kind][0] for kind in KINDS if row[kind])
    cells += [f"{s / best_s:.2f}" if s else "-"
              for s in (row["native_s"], row["flat"] and row["flat"][0])]
    return "| " + " | ".join(cells) + " |"


def sizes(text):
    known = set(sum(COLLECTIVES.values(), []))
    if any(not b.isdecimal() or int(b) not in known for b in text.split(",")):
        raise argparse.ArgumentTypeError(f"'{text}': expected some of {sorted(known)}")
    return [int(b) for b in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="with railpass")
    parser.add_argument("--machine", default="nodes8x16", help="one of machines/*.cpp")
    parser.add_argument("--collectives", default=",".join(COLLECTIVES))
    parser.add_argument("--bytes", type=sizes, help="only messages of these sizes")
    parser.add_argument("--seconds", type=float, default=120, help="real time for a cell")
    o = parser.parse_args()
    machine.find_programs(o)
    known = kinds_of_algorithms(o)
    with tempfile.TemporaryDirectory() as work:
        m = machine.Machine(os.path.join(machine.MACHINES, o.machine + ".cpp"), work, o)
        m.fit([])
        print("| collective | message | native | flat | | composed | | full-lane | | native / best | "
              "flat / best |\n|---|--:|--:|--:|---|--:|---|--:|---|--:|--:|")
        for collective in o.collectives.split(","):
            for size in COLLECTIVES[collective]:
                if o.bytes and size not in o.bytes:
                    continue
                try:
                    print(line_of(row_of(m, known, collective, size, o.seconds)), flush=True)
                except machine.Failure as problem:
                    print(f"{collective} {size}: {problem}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main()
    except machine.Failure as failure:
        sys.exit(f"nodes.py: {failure}")

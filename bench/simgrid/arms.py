# SPDX-License-Identifier: BSL-1.0
"""Times of named arms on a machine that SMPI simulates.

    python3 bench/simgrid/arms.py --build build/release --machine torus_512 \
        --collectives broadcast reduce --bytes 64 65536 --arms bine binomial native

Bytes are of the message; of an all_gather and its like of all blocks together. An arm may be the name of
one of SMPI's selectors, such as mpich: native by that library's choice. Prints a table as Markdown:
microseconds, and how often as long the first arm takes as each other one.
"""
import argparse
import os
import sys
import tempfile

import machine

SELECTORS = ["ompi", "mpich", "impi", "mvapich2"]


def seconds_of(m, options, collective, size):
    """By arm."""
    arms = [arm for arm in options.arms if arm not in SELECTORS]
    how = {"empty": options.empty, "calls": options.calls}
    timed = m.times(collective, size, arms, options.seconds, **how)["arms"] if arms else []
    seconds = {a["arm"]: a["seconds"] for a in timed}
    for selector in set(SELECTORS) & set(options.arms):
        try:
            native = m.simulate("native", collective, size, selector=selector,
                                timeout=options.seconds, **how)
            seconds[selector] = native["seconds"]
        except machine.Failure as problem:
            print(f"{selector}: {problem}", file=sys.stderr, flush=True)
    return seconds


def line_of(m, options, collective, size):
    seconds = seconds_of(m, options, collective, size)
    first = seconds.get(options.arms[0])
    cells = [collective, str(size)]
    for arm in options.arms:
        cells.append(f"{1e6 * seconds[arm]:.1f}" if arm in seconds else "-")
    cells += [f"{first / seconds[arm]:.2f}" if first and arm in seconds else "-"
              for arm in options.arms[1:]]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--machine", required=True, help="name of a file in bench/simgrid/machines")
    parser.add_argument("--collectives", nargs="+", required=True)
    parser.add_argument("--bytes", nargs="+", type=int, required=True)
    parser.add_argument("--arms", nargs="+", required=True)
    parser.add_argument("--empty", type=float, default=0, help="share of the blocks of an all_to_allv")
    parser.add_argument("--calls", type=int, default=3, help="of each arm, the quickest counts")
    parser.add_argument("--seconds", type=float, default=600, help="real time for each line")
    options = parser.parse_args()
    paths = [os.path.join(machine.MACHINES, options.machine + ending) for ending in (".xml", ".cpp")]
    try:
        machine.find_programs(options)
        with tempfile.TemporaryDirectory() as work:
            m = machine.Machine(next((p for p in paths if os.path.exists(p)), paths[0]), work, options)
            titles = ["collective", "bytes", *(f"`{arm}` us" for arm in options.arms),
                      *(f"of `{arm}`" for arm in options.arms[1:])]
            print("| " + " | ".join(titles) + " |\n" + "|---" * len(titles) + "|", flush=True)
            for collective in options.collectives:
                for size in options.bytes:
                    print(line_of(m, options, collective, size), flush=True)
    except machine.Failure as problem:
        sys.exit(f"arms.py: {problem}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSL-1.0
"""Draws what tuned calls take beside the MPI library's own, from the first table of docs/measurements/collectives.md.

    python3 bench/collectives/picture.py docs/measurements/collectives.md docs/figures/collectives.svg
"""
import re
import sys

import matplotlib
matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

SHORT = "1 KiB (a barrier has none)"
MARKS = ((SHORT, "tab:gray", "o"), ("64 KiB", "tab:orange", "s"), ("512 KiB", "tab:green", "D"))


def rows(path):
    """{collective: {size: tuned / native}} of the first table with results."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            cells = [c.strip() for c in line.split("|")[1:-1]]
            ratio = len(cells) == 11 and re.match(r"[0-9.]+", cells[7])
            if ratio:
                size = SHORT if cells[1] in ("1 KiB", "") else cells[1]
                found.setdefault(cells[0], {})[size] = float(ratio[0])
            elif found and not line.startswith("|"):
                return found
    return found


def main():
    table = rows(sys.argv[1])
    names = sorted(table, key=lambda name: table[name].get("512 KiB", 1), reverse=True)
    plt.rcParams["svg.hashsalt"] = "railpass"  # the same picture is the same file
    plt.rcParams["svg.fonttype"] = "none"  # half the size
    plt.rcParams["font.size"] = 9
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for size, colour, mark in MARKS:
        points = [(table[name][size], place) for place, name in enumerate(names) if size in table[name]]
        axes.scatter(*zip(*points), color=colour, marker=mark, s=28, label=size, zorder=3)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_yticks(range(len(names)), names)
    axes.set(xscale="log", xlabel="time of the tuned call / Open MPI's own",
             title="8 emulated hosts, links of 200 Mbit/s: left of the line railpass is faster")
    axes.set_xticks([0.15, 0.2, 0.3, 0.5, 0.7, 1], ["0.15", "0.2", "0.3", "0.5", "0.7", "1"])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left", title="message")
    figure.savefig(sys.argv[2], metadata={"Date": None})


main()

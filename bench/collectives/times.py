# SPDX-License-Identifier: BSL-1.0
"""Draws what calls take against their size, from the tables of docs/measurements/between_hosts.md: the MPI library's own, the
tuned ones, and the limit.

    python3 bench/collectives/times.py docs/measurements/between_hosts.md docs/figures/times.svg
"""
import re
import sys

import matplotlib
matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1, "": 1, "KiB": 1 << 10, "MiB": 1 << 20}
LINES = (("Open MPI's own", "tab:gray", "o"), ("tuned", "tab:green", "D"))
LIMIT = "limit of the network interface"
TICKS = {8: "8 B", 1 << 10: "1 KiB", 8 << 10: "8 KiB", 64 << 10: "64 KiB", 512 << 10: "512 KiB", 4 << 20: "4 MiB"}


def number(cell):
    value, unit = re.fullmatch(r"([0-9.]+) ?(\w*)", cell).groups()
    return float(value) * UNITS[unit]


def rows(path):
    """{collective: {column: [(bytes, seconds)]}} of the tables that begin with a collective and its bytes."""
    found, columns, collective = {}, [], ""
    with open(path, encoding="utf-8") as file:
        for line in file:
            cells = [c.strip() for c in line.split("|")[1:-1]]
            if cells[:3] == ["", "bytes", "Open MPI's own"]:
                columns = cells
            elif not cells:
                columns = []
            elif columns and not cells[1].startswith("---"):
                collective = cells[0] or collective
                for column in {name for name, *_ in LINES} | {"limit"} & set(columns):
                    point = number(cells[1]), number(cells[columns.index(column)])
                    found.setdefault(collective, {}).setdefault(column, []).append(point)
    return found


def main():
    plt.rcParams["svg.hashsalt"] = "railpass"  # the same picture is the same file
    plt.rcParams["svg.fonttype"] = "none"  # half the size
    plt.rcParams["font.size"] = 9
    figure, panels = plt.subplots(1, 2, figsize=(7, 3.4), sharey=True, layout="constrained")
    for axes, (collective, times) in zip(panels, sorted(rows(sys.argv[1]).items(), reverse=True), strict=True):
        axes.plot(*zip(*sorted(times["limit"])), color="tab:orange", alpha=0.5, linewidth=6, label=LIMIT)
        for name, colour, mark in LINES:
            axes.plot(*zip(*sorted(times[name])), color=colour, marker=mark, markersize=4, label=name)
        axes.set(xscale="log", yscale="log", xlabel="message", title=collective)
        axes.set_xticks(list(TICKS), list(TICKS.values()), rotation=30)
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("time of a call")
    panels[0].set_yticks([1e-4, 1e-3, 1e-2, 1e-1, 1], ["0.1 ms", "1 ms", "10 ms", "100 ms", "1 s"])
    panels[0].minorticks_off()
    panels[0].legend(loc="upper left")
    figure.suptitle("8 emulated hosts with links of 200 Mbit/s, Open MPI 4.1")
    figure.savefig(sys.argv[2], metadata={"Date": None})


main()

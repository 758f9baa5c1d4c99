#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Figures of two papers on NewMadeleine, redone with railpass on emulated networks:

    python3 bench/paper/newmadeleine/figures.py copying        # 2011, Figures 4 to 8
    python3 bench/paper/newmadeleine/figures.py rendezvous     # 2011, Figures 9 to 13
    python3 bench/paper/newmadeleine/figures.py aggregation    # 2011, Figures 14 to 18
    python3 bench/paper/newmadeleine/figures.py subdivision    # 2011, Figure 2
    python3 bench/paper/newmadeleine/figures.py segments       # 2007, Figures 2 and 3
    python3 bench/paper/newmadeleine/figures.py greedy         # 2007, Figures 4 and 5
    python3 bench/paper/newmadeleine/figures.py rails          # 2011, 19 to 21; 2007, 6 and 7

2011: A sampling-based approach for communication libraries auto-tuning (Brunet, Trahay, Denis,
Namyst). 2007: High-performance multi-rail support with the NewMadeleine communication library
(Aumage, Brunet, Mercier, Namyst).

The first three show two ways of sending on five kinds of rail and the threshold that railpass
found, and print what another kind's threshold would cost: the most, over the sizes, by which the way
it says is slower than the better one. --samples keeps what was measured, and reads it if it is there.
The others measure two emulated hosts with networks of 400 and 100 Mbit/s by the means of bench/rails;
bands are from the least to the most of the repetitions, in which all curves take turns.
Pictures go to docs/figures. Needs root (bench/cluster), Debian's python3-matplotlib and a build.
"""
import argparse
import importlib.machinery
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile

import matplotlib
matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import LogLocator, NullLocator  # noqa: E402

plt.rcParams["svg.hashsalt"] = "railpass"  # the same picture is the same file

TOP = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
HOST = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# Kind, rails on one host, or rate and MTU of an emulated network.
KINDS = [("shared memory (MPI)", "mpi", None), ("TCP within a host", "127.0.0.1", None),
         ("10 Gbit/s, MTU 9000", None, ("10gbit", 9000)), ("1 Gbit/s", None, ("1gbit", 1500)),
         ("100 Mbit/s", None, ("100mbit", 1500))]
MOST_EAGER_BYTES = 1 << 16
# Two ways (curves of the samples), what people call them, and the key of the crossing.
WAYS = {
    "copying": (("copied", "copied behind the header"), ("pieces", "read by the network"),
                "pieces_from_bytes"),
    "rendezvous": (("eager", "at once, and copied by the receiver"),
                   ("rendezvous", "announced and asked for"), "rendezvous_from_bytes"),
    "aggregation": (("aggregate", "one transmission"), ("two_packets", "two packets"),
                    "two_packets_from_bytes"),
}


def call(*command):
    done = subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE, text=True,
                          stdin=subprocess.DEVNULL, env={**os.environ, **HOST}, timeout=300)
    return json.loads(done.stdout[done.stdout.index("{"):])


def measured(options, rails, network):
    railpass = [os.path.join(options.build, "lib/cli/railpass"), "rails", "--budget", "10s",
                "--json", "-"]
    if network is None:
        return call("mpirun", "-n", 2, "--oversubscribe", *railpass, "--rails", rails)
    rate, mtu = network
    return call(sys.executable, os.path.join(TOP, "bench/cluster"), "--name", "figures", "run",
                "--hosts", 2, "--rate", rate, "--mtu", mtu, "--timeout", 120, "--", *railpass)


def all_kinds(options):
    if options.samples and os.path.exists(options.samples):
        with open(options.samples, encoding="utf-8") as file:
            return json.load(file)
    found = {kind: measured(options, rails, network) for kind, rails, network in KINDS}
    if options.samples:
        with open(options.samples, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
    return found


def interpolated(curve, size):
    points = sorted(curve.items())
    for (a, s), (b, t) in zip(points, points[1:]):
        if a <= size <= b:
            return s + (t - s) * (size - a) / (b - a)
    return points[0][1] if size < points[0][0] else points[-1][1]


def curves(found, way):
    """The two curves and the crossing: a size, None for never."""
    (first, _), (second, _), key = WAYS[way]
    (samples,), (link,) = found["samples"], found["links"]
    rail = {name: {p["bytes"]: p["seconds"] for p in points}
            for name, points in samples["rails"][0].items()}
    copy = {p["bytes"]: p["seconds"] for p in samples["memory_copy"]}
    best = {b: min(s, rail["copied"].get(b, s)) for b, s in rail["pieces"].items()}
    rail["eager"] = {b: s + interpolated(copy, b) for b, s in best.items()}
    return rail[first], rail[second], link["rails"][0][key]


def loss(first, second, threshold):
    """The most that is lost by the first way below the threshold and the second one from there."""
    worst = 0
    for size in first.keys() & second.keys():
        below = threshold is None or size < threshold
        taken = (first if below else second)[size]
        worst = max(worst, taken / min(first[size], second[size]) - 1)
    return worst


def shown(threshold):
    return "never" if threshold is None else "always" if threshold == 0 else f"{threshold} bytes"


def size_axis(axes, ticks):
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [f"{t >> 20}M" if t >> 20 else f"{t >> 10}K" if t >> 10 else str(t)
                            for t in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(alpha=0.3)


def save(figure, options, name):
    os.makedirs(options.output, exist_ok=True)
    path = os.path.join(options.output, f"newmadeleine_{name}.svg")
    figure.savefig(path, metadata={"Date": None})
    print(path)


def thresholds(options, way):
    found = all_kinds(options)
    (_, first_label), (_, second_label), _ = WAYS[way]
    figure, rows = plt.subplots(2, len(found), figsize=(2.6 * len(found), 4.6), sharex=True,
                                height_ratios=(2, 1), layout="constrained")
    for times, ratios, (kind, what) in zip(*rows, found.items()):
        first, second, threshold = curves(what, way)
        for curve, colour in ((first, "tab:blue"), (second, "tab:orange")):
            points = sorted((b, s * 1e6) for b, s in curve.items() if b <= MOST_EAGER_BYTES)
            times.plot(*zip(*points), marker="o", markersize=3, color=colour)
        both = sorted((b, second[b] / first[b]) for b in first.keys() & second.keys())
        ratios.plot(*zip(*both), marker="o", markersize=3, color="black")
        ratios.axhline(1, color="grey", linewidth=0.8)
        times.set(yscale="log", title=f"{kind}\nsecond way from: {shown(threshold)}")
        times.title.set_fontsize(9)
        times.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        times.yaxis.set_major_formatter("{x:g}")
        times.yaxis.set_minor_locator(NullLocator())
        ratios.set(xlabel="bytes")
        for axes in (times, ratios):
            if threshold:
                axes.axvline(threshold, color="black", linestyle=":")
            size_axis(axes, [64, 1024, 8192, 65536])
    rows[0][0].set_ylabel("one way in us")
    rows[1][0].set_ylabel("second to first")
    figure.suptitle(f"First (blue): {first_label}. Second (orange): {second_label}.", fontsize=10)
    save(figure, options, way)
    print("| | " + " | ".join(f"threshold of {kind}" for kind in found) + " |")
    print("|---" * (len(found) + 1) + "|")
    for kind, what in found.items():
        first, second, _ = curves(what, way)
        costs = [f"{100 * loss(first, second, curves(other, way)[2]):.0f} %"
                 for other in found.values()]
        print(f"| {kind} | " + " | ".join(costs) + " |")


def rails(options):
    """Latency and bandwidth of each rail, of both, and of equal parts."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([os.path.join(TOP, "bench/rails"), "--build", options.build,
                        "--rates", "400,100",
                        "--bytes", "1KiB,4KiB,16KiB,32KiB,64KiB,128KiB,256KiB,1MiB,4MiB",
                        "--setups", "rail0,rail1,equal,railpass", "--repetitions", "3",
                        "--json", file.name], check=True, timeout=600)
        results = json.load(file)["results"]
    names = {"rail0": "400 Mbit/s alone", "rail1": "100 Mbit/s alone", "equal": "both, equal parts",
             "railpass": "both, railpass"}
    figure, (latency, bandwidth) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for setup, label in names.items():
        mine = [r for r in results if r["setup"] == setup]
        sizes = [r["bytes"] for r in mine]
        line = {"marker": "o", "markersize": 3, "label": label}
        latency.plot(sizes, [r["latency_s"] * 1e3 for r in mine], **line)
        bandwidth.plot(sizes, [r["mbit_s"] for r in mine], **line)
    latency.set(yscale="log", xlabel="bytes", ylabel="half a round trip in ms")
    bandwidth.set(xlabel="bytes", ylabel="Mbit/s, window of 4 messages", ylim=(0, None))
    for axes in (latency, bandwidth):
        size_axis(axes, [1 << k for k in range(10, 23, 2)])
    latency.legend()
    save(figure, options, "rails")
    one = {r["bytes"]: r["latency_s"] for r in results if r["setup"] == "rail0"}
    both = {r["bytes"]: r["latency_s"] for r in results if r["setup"] == "railpass"}
    pays = [b for b in sorted(one) if all(both[c] < one[c] for c in one if c >= b)]
    print("two rails pay from", pays[0] if pays else "nowhere")


class Curve:
    """One way of half a ping-pong: how many messages, of how many parts each."""

    def __init__(self, label, setup, messages=1, parts=1):
        self.label, self.setup, self.messages, self.parts = label, setup, messages, parts
        self.times_s = {}  # by size, one per repetition


def bench_rails():
    loader = importlib.machinery.SourceFileLoader("rails", os.path.join(TOP, "bench/rails"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("rails", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def time_curves(options, curves, sizes):
    """Fills in their times; all take turns."""
    bench = bench_rails()
    what = bench.parse(["--build", options.build])
    machine = bench.machine()
    launched = {}
    with tempfile.TemporaryDirectory() as work, bench.Hosts(2, [400, 100]) as hosts:
        try:
            for name in dict.fromkeys(c.setup for c in curves):
                launched[name] = bench.Setup(name, what, hosts, work)
                # So that the rates are known.
                launched[name].ask("stream pairs 4194304 8 4")
            for size in sizes:
                trips = {}
                for repetition in range(-1, options.repetitions):
                    for c in curves:
                        took_s = launched[c.setup].ask(f"ping_pong {size} {trips.get(c, 2)} "
                                                       f"{c.messages} {c.parts}")["seconds"]
                        if repetition < 0:
                            trips[c] = max(1, min(200, int(0.03 / took_s)))
                        else:
                            c.times_s.setdefault(size, []).append(took_s)
        finally:
            bench.Bench.stop(launched.values())
    print(f"{machine['processor']}, {machine['cores']} cores, Linux {machine['kernel']}, load before "
          f"{machine['load_before']}; medians of {options.repetitions}")


def draw_times(axes, curves):
    """A row of them: time of one way in us, and Mbit/s."""
    for curve in curves:
        sizes = sorted(curve.times_s)
        for panel, value in zip(axes, (lambda b, s: s * 1e6, lambda b, s: b * 8e-6 / s)):
            rows = [sorted(value(b, s) for s in curve.times_s[b]) for b in sizes]
            line, = panel.plot(sizes, [statistics.median(r) for r in rows], marker="o", markersize=3,
                               label=curve.label)
            panel.fill_between(sizes, [r[0] for r in rows], [r[-1] for r in rows], alpha=0.2,
                               color=line.get_color(), linewidth=0)
    axes[0].set(yscale="log", ylabel="one way in us")
    axes[1].set(ylabel="Mbit/s", ylim=(0, None))
    for panel in axes:
        size_axis(panel, [1 << k for k in range(6, 23, 2)])
        panel.set_xlabel("bytes, all segments together")
    axes[0].legend(fontsize=8)


def print_times(curves, sizes):
    print("| us, median (least .. most) | " + " | ".join(c.label for c in curves) + " |")
    print("|---" * (len(curves) + 1) + "|")
    for size in sizes:
        cells = [sorted(1e6 * s for s in c.times_s[size]) for c in curves]
        print(f"| {size} | " + " | ".join(
            f"{statistics.median(t):.4g} ({t[0]:.4g} .. {t[-1]:.4g})" for t in cells) + " |")


NETWORKS = ("400 Mbit/s", "100 Mbit/s")
SEGMENT_SIZES = [1 << k for k in range(6, 21, 2)]


def segments(options):
    """One segment, and 2 and 4 of them: aggregated to one message, or a message each."""
    rows = [[Curve("1 segment", f"rail{r}+split")] +
            [Curve(f"{n} segments, {how}", f"rail{r}+split", *shape) for n in (2, 4)
             for how, shape in (("aggregated", (1, n)), ("one by one", (n, 1)))] for r in (0, 1)]
    time_curves(options, rows[0] + rows[1], SEGMENT_SIZES)
    figure, axes = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
    for row, curves, network in zip(axes, rows, NETWORKS):
        draw_times(row, curves)
        row[0].set_title(network)
        print(network)
        print_times(curves, SEGMENT_SIZES)
    save(figure, options, "segments")


def greedy(options):
    """2 and 4 segments, each whole on the first idle network, and all on either network."""
    rows = [[Curve(f"{n} segments, {label}", setup, n) for label, setup in
             (("400 Mbit/s alone", "rail0+split"), ("100 Mbit/s alone", "rail1+split"),
              ("both, greedy", "greedy"))] for n in (2, 4)]
    sizes = [1 << k for k in range(6, 23, 2)]
    time_curves(options, rows[0] + rows[1], sizes)
    figure, axes = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
    for row, curves in zip(axes, rows):
        draw_times(row, curves)
        print_times(curves, sizes)
    save(figure, options, "greedy")


def subdivision(options):
    """A length in 1, 2, 4, 8 and 16 messages."""
    curves = [Curve(f"{n} message{'s' * (n > 1)}", "rail0+split", n) for n in (1, 2, 4, 8, 16)]
    time_curves(options, curves, SEGMENT_SIZES)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    draw_times(axes, curves)
    axes[0].set_title(NETWORKS[0])
    print_times(curves, SEGMENT_SIZES)
    save(figure, options, "subdivision")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    by_time = {"subdivision": subdivision, "segments": segments, "greedy": greedy, "rails": rails}
    parser.add_argument("figure", choices=[*WAYS, *by_time])
    parser.add_argument("--build", default=os.path.join(TOP, "build/release"), help="build folder")
    parser.add_argument("--output", default=os.path.join(TOP, "docs/figures"))
    parser.add_argument("--samples", help="file that keeps what railpass rails measured")
    parser.add_argument("--repetitions", type=int, default=9, help="of ping-pongs, default 9")
    options = parser.parse_args()
    if options.figure in by_time:
        by_time[options.figure](options)
    else:
        thresholds(options, options.figure)


if __name__ == "__main__":
    main()

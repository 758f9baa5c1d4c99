#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Figures 2 to 5 of the poster on PASS (Nishtala, Patel, Sanghavi, Chakrabarti: Automatic Tuning
of Collective Communications in MPI), redone with railpass:

    python3 bench/paper/pass/figures.py 2     # the best arm against the number of ranks
    python3 bench/paper/pass/figures.py 3     # a gather whose best arm changes in mid-run
    python3 bench/paper/pass/figures.py 4     # time against segment size, the learnt arm marked
    python3 bench/paper/pass/figures.py 5     # time per call of fixed arms and of two policies

Pictures go to docs/figures. Times are simulated on the machines of the folder machines, whose
constants are made up for an Ethernet and a fast fabric; --samples takes what `railpass sample`
measured on a real machine instead. Needs Debian's python3-matplotlib and a build folder.
"""
import argparse
import json
import os
import subprocess
import tempfile

import matplotlib
matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter  # noqa: E402

plt.rcParams["svg.hashsalt"] = "railpass"  # the same picture is the same file
plt.rcParams["svg.fonttype"] = "none"  # letters, not outlines of them

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.normpath(os.path.join(HERE, "../../.."))
SIZES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}


def call(*command):
    return json.loads(subprocess.run([str(c) for c in command], check=True,
                                     stdout=subprocess.PIPE, timeout=600).stdout)


class Machine:
    """A profile fitted from samples, and what railpass says about it."""

    def __init__(self, options, samples, folder):
        self.options = options
        self.name = os.path.splitext(os.path.basename(samples))[0]
        self.profile = os.path.join(folder, self.name + ".json")
        call(options.railpass, "fit", samples, "-o", self.profile, "--json", "-")

    def simulated(self, ranks, size):
        """Simulated time by arm."""
        found = call(self.options.railpass, "predict", "--profile", self.profile, "--collective",
                     "broadcast", "-p", ranks, "--bytes", size, "--simulate", "--json", "-")
        return {p["arm"]: p["simulated_s"] for p in found["predictions"]
                if p["simulated_s"] is not None}

    def changed(self, name, fields, factor):
        """A profile of this machine with these fields of its links times a factor."""
        with open(self.profile) as file:
            known = json.load(file)
        for link in ("same_node", "across_nodes"):
            for piece in known["machine"][link]["pieces"]:
                for field in fields:
                    piece[field] *= factor
        path = self.profile.replace(".json", f".{name}.json")
        with open(path, "w") as file:
            json.dump(known, file)
        return path

    def learning(self, collective, ranks, size, calls, seeds, *later_profiles):
        return call(self.options.learning, collective, ranks, 1, size, calls, seeds, self.profile,
                    *later_profiles)


def algorithm(arm):
    return arm.split("+")[0]


def segment_bytes(arm):
    for word in arm.split("+")[1:]:
        name, value = word.split("=")
        if name == "segment_bytes":
            digits = value.rstrip("KMiB")
            return int(digits) * SIZES[value[len(digits):] or "B"]
    return 0


def plain_numbers(axis):
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def save(figure, options, name):
    for axes in figure.axes:
        plain_numbers(axes.yaxis)
    os.makedirs(options.output, exist_ok=True)
    path = os.path.join(options.output, f"pass_{name}.svg")
    figure.savefig(path, metadata={"Date": None})
    print(path)


def colors(options):
    """A color for each algorithm there is."""
    names = [a["name"] for a in call(options.railpass, "algorithms", "--json", "-")
             if a["collective"] == "broadcast" and a["name"] != "native"]
    return dict(zip(names, plt.get_cmap("tab20").colors))


def figure_2(options, machines):
    """For every algorithm its best parameters; below, which algorithm is the best."""
    size, ranks, color = "64KiB", [2, 4, 8, 16, 32, 64, 128], colors(options)
    figure, all_axes = plt.subplots(1, len(machines), figsize=(6.2 * len(machines), 5),
                                    squeeze=False, layout="constrained")
    for axes, machine in zip(all_axes[0], machines):
        best = {}
        for p in ranks:
            for arm, seconds in machine.simulated(p, size).items():
                at = best.setdefault(algorithm(arm), {})
                at[p] = min(at.get(p, seconds), seconds)
        for name, at in best.items():
            axes.plot(list(at), [s * 1e3 for s in at.values()], marker="o", markersize=3,
                      color=color[name], label=name, linewidth=1.2)
        for p in ranks:
            winner = min((at[p], name) for name, at in best.items() if p in at)
            axes.plot(p, winner[0] * 1e3, marker="*", markersize=16, color=color[winner[1]],
                      markeredgecolor="black")
        axes.set(xscale="log", yscale="log", title=f"{machine.name}: broadcast of {size}",
                 xlabel="ranks, one per node", ylabel="time in ms (star: the best)")
        axes.set_xticks(ranks, [str(p) for p in ranks])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    all_axes[0][0].legend(fontsize=8)
    save(figure, options, "figure2")


def figure_3(options, machines):
    """Three times of one machine; what the arms take in each, and what the policies do."""
    ranks, size, calls, seeds = 32, "512KiB", 400, 100
    figure, all_axes = plt.subplots(1, len(machines), figsize=(6.2 * len(machines), 5),
                                    squeeze=False, layout="constrained")
    for axes, machine in zip(all_axes[0], machines):
        busy = machine.changed("busy", ("send_overhead_s", "receive_overhead_s", "gap_s"), 20)
        slow = machine.changed("slow", ("gap_s_per_byte",), 4)
        learnt = machine.learning("gather", ranks, size, calls, seeds, busy, slow)
        arms = [a for a in learnt["arms"] if a["arm"] != "native"]
        for a, color in zip(arms, plt.get_cmap("tab10").colors):
            for phase, seconds in enumerate(a["simulated_s"]):
                axes.plot([phase * calls + 1, (phase + 1) * calls], [seconds * 1e3] * 2, color=color,
                          linewidth=1.2, label=a["arm"] if phase == 0 else None)
        for policy, ink in zip(learnt["policies"], ["black", "#0033cc"]):
            axes.plot(range(1, 3 * calls + 1), [s * 1e3 for s in policy["mean_s"]], color=ink,
                      linewidth=0.9, label=f"{policy['policy']}, mean of {seeds} seeds")
            for phase in range(3):
                mean_s = policy["mean_s"][phase * calls:(phase + 1) * calls]
                best_s = min(a["simulated_s"][phase] for a in arms)
                print(f"{machine.name}, {policy['policy']}, phase {phase + 1}: "
                      f"{sum(mean_s) / calls / best_s:.3f} of the best arm, last 100 calls "
                      f"{sum(mean_s[-100:]) / 100 / best_s:.3f}")
        for phase, what in enumerate(["quiet", "busy processors", "busy network"]):
            axes.axvline(phase * calls + 1, color="gray", linewidth=0.5)
            axes.text((phase + 0.5) * calls, 1.02, what, ha="center",
                      transform=axes.get_xaxis_transform())
        axes.set(yscale="log", xlabel="call", ylabel="time per call in ms")
        axes.set_title(f"{machine.name}: gather of {size} from {ranks} ranks", pad=22)
        axes.grid(alpha=0.3, axis="y")
        axes.legend(fontsize=6.5)
    save(figure, options, "figure3")


def figure_4(options, machines):
    """Pipelined arms at every segment size; the arm that most seeds of a policy settle on."""
    ranks, size, color = 16, "1MiB", colors(options)
    figure, all_axes = plt.subplots(1, len(machines), figsize=(6.2 * len(machines), 5),
                                    squeeze=False, layout="constrained")
    for axes, machine in zip(all_axes[0], machines):
        learnt = machine.learning("broadcast", ranks, size, 400, 40)
        times = {a["arm"]: a["simulated_s"][0] for a in learnt["arms"] if a["arm"] != "native"}
        whole = SIZES["MiB"]
        chosen = [max(p["settled"].items(), key=lambda item: item[1])[0]
                  for p in learnt["policies"]]
        names = ["binomial", "binary", "split_binary", "pipeline"]
        names += [n for n in dict.fromkeys(map(algorithm, chosen)) if n not in names + ["native"]]
        for name in names:
            points = sorted((segment_bytes(arm) or whole, s * 1e3) for arm, s in times.items()
                            if algorithm(arm) == name and segment_bytes(arm) < whole)
            axes.plot(*zip(*points), marker="o", markersize=3, color=color[name], label=name)
        for policy, arm, marker in zip(learnt["policies"], chosen, ["s", "*"]):
            shown = arm if arm != "native" else "binomial"
            share = 100 * policy["settled"][arm] / sum(policy["settled"].values())
            axes.plot(segment_bytes(shown) or whole, times[shown] * 1e3, marker=marker,
                      markersize=15, color="none", markeredgecolor="black", linestyle="none",
                      label=f"{policy['policy']}: {arm}\n({share:.0f} % of the seeds)")
        axes.set(xscale="log", yscale="log", title=f"{machine.name}: {size} to {ranks} ranks",
                 xlabel="segment size (the last: not segmented)", ylabel="time in ms")
        ticks = [SIZES["KiB"] << k for k in range(0, 11, 2)]
        axes.set_xticks(ticks, ["1K", "4K", "16K", "64K", "256K", "1M"])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    save(figure, options, "figure4")


def draw_figure_5(panels, seeds):
    """Panels: a title, (arm, ms) of the fixed arms from the fastest one, and curves in ms by (policy, kind)."""
    inks = {"pass": "#c92a2a", "knowledge_gradient": "#1f5fbf"}
    figure, all_axes = plt.subplots(len(panels), 1, figsize=(8, 4.6 * len(panels)), squeeze=False,
                                    layout="constrained")
    for axes, (title, fixed, curves) in zip(all_axes[:, 0], panels):
        calls = max(len(values) for values in curves.values())
        place = -1
        for arm, ms in fixed:
            axes.axhline(ms, color="#999999", linewidth=0.7)
        for (policy, kind), values in curves.items():
            axes.plot(range(1, len(values) + 1), values, ":" if kind == "median" else "-", linewidth=1.5,
                      color=inks[policy], label=f"{policy}, {kind} of {seeds} seeds")
        axes.set(xscale="log", yscale="log", xlim=(1, calls), title=title, ylabel="time per call in ms")
        for arm, ms in fixed:  # names beside the lines, one above the other
            y = axes.transAxes.inverted().transform(axes.transData.transform((1, ms)))[1]
            place = max(y, place + 0.042)
            axes.annotate(arm, (1, y), (1.03, place), xycoords="axes fraction", textcoords="axes fraction",
                          va="center", fontsize=7, color="#444444",
                          arrowprops={"arrowstyle": "-", "color": "#bbbbbb", "linewidth": 0.5,
                                      "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 0})
        plain_numbers(axes.xaxis)
    all_axes[-1, 0].set_xlabel("call")
    all_axes[0, 0].legend(loc="lower center", bbox_to_anchor=(0.5, 1.08), ncols=2, fontsize=8)
    return figure


def figure_5(options, machines):
    """Fixed arms are lines; a policy's mean and median over the seeds show what exploring costs."""
    ranks, size, calls, seeds = 16, "1MiB", 300, 200
    panels = []
    for machine in machines:
        learnt = machine.learning("broadcast", ranks, size, calls, seeds)
        best = {}
        for a in learnt["arms"]:
            name = algorithm(a["arm"])
            if name != "native" and a["simulated_s"][0] < best.get(name, (9e9, ""))[0]:
                best[name] = (a["simulated_s"][0], a["arm"])
        curves = {(policy["policy"], key[:-2]): [s * 1e3 for s in policy[key]]
                  for policy in learnt["policies"] for key in ("mean_s", "median_s")}
        panels.append((f"{machine.name}: {size} to {ranks} ranks",
                       [(arm, seconds * 1e3) for seconds, arm in sorted(best.values())], curves))
    save(draw_figure_5(panels, seeds), options, "figure5")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figure", choices=["2", "3", "4", "5"])
    parser.add_argument("--build", default=os.path.join(TOP, "build/dev"), help="build folder")
    parser.add_argument("--output", default=os.path.join(TOP, "docs/figures"))
    parser.add_argument("--samples", nargs="+", help="files of railpass sample",
                        default=[os.path.join(HERE, "machines", name + ".json")
                                 for name in ("ethernet", "fabric")])
    options = parser.parse_args()
    options.railpass = os.path.join(options.build, "lib/cli/railpass")
    options.learning = os.path.join(options.build, "bench/paper_pass_learning")
    with tempfile.TemporaryDirectory() as folder:
        machines = [Machine(options, samples, folder) for samples in options.samples]
        {"2": figure_2, "3": figure_3, "4": figure_4,
         "5": figure_5}[options.figure](options, machines)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSL-1.0
"""The pictures of what `bench/regret` found. Names stand beside the lines; nothing covers them."""
import matplotlib
matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

plt.rcParams["svg.hashsalt"] = "railpass"  # the same picture is the same file
plt.rcParams["svg.fonttype"] = "none"  # letters, not outlines of them

# The policies that the pictures show, and how; the tables have all.
DRAWN = {"default": ("#1f5fbf", 2.6), "thompson": ("#17a2a2", 1.4), "fixed": ("#d6336c", 1.4),
         "epsilon_greedy": ("#2b8a3e", 1.4), "pass": ("#e8590c", 1.4), "star_mpi": ("#7048e8", 1.4),
         "periodic_retest": ("#8d6e1b", 1.4), "adcl_brute_force": ("#495057", 1.4), "native": ("#111111", 1.4)}
NAMED = {"fixed": "fixed (the model alone)"}


def name_lines(axes, ends):
    """Writes names beside the right ends of their lines: (name, y as a share of the axes' height)."""
    gap = 0.052
    places = sorted(([name, y] for name, y in ends), key=lambda place: place[1])
    for _ in range(200):  # those that are too near push each other apart
        for low, high in zip(places, places[1:]):
            push = max(0, gap - (high[1] - low[1])) / 2
            low[1], high[1] = low[1] - push, high[1] + push
    for name, y in places:
        axes.text(1.015, y, NAMED.get(name, name), transform=axes.transAxes, va="center", fontsize=8,
                  color=DRAWN[name][0], fontweight="bold" if name == "default" else "normal")


def height_in(axes, y):
    return axes.transAxes.inverted().transform(axes.transData.transform((1, y)))[1]


def draw_regret(counts, means, band, selectors, path):
    """Means of the cells by policy, the band of the default one, and what selectors take: all in
    percent more than the best arm."""
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    if selectors:
        axes.axhspan(min(selectors), max(selectors), color="#cccccc", alpha=0.5, linewidth=0)
        axes.text(counts[0], max(selectors), " the choices of four MPI libraries", va="bottom", fontsize=8)
    axes.fill_between(counts, *band, color=DRAWN["default"][0], alpha=0.15, linewidth=0)
    for policy, (color, width) in DRAWN.items():
        axes.plot(counts, means[policy], color=color, linewidth=width, marker="o", markersize=3)
    axes.set(xscale="log", yscale="log", xlabel="calls", ylabel="% more time than the best arm",
             title="mean of the cells; shaded: default, 10th to 90th percentile")
    axes.title.set_fontsize(10)
    axes.grid(alpha=0.3)
    name_lines(axes, [(p, height_in(axes, means[p][-1])) for p in DRAWN])
    figure.savefig(path, metadata={"Date": None})


def draw_recovery(within, shares, path):
    """By change and policy, the percent of the runs that are back within so many calls."""
    figure, all_axes = plt.subplots(len(shares), 1, figsize=(8, 2.9 * len(shares)), sharex=True,
                                    layout="constrained")
    for axes, (change, by_policy) in zip(all_axes, shares.items()):
        drawn = {p: by_policy[p] for p in DRAWN if max(by_policy[p]) > 0}
        for policy, values in drawn.items():
            color, width = DRAWN[policy]
            axes.step(within, values, color=color, linewidth=width, where="post")
        never = [NAMED.get(p, p) for p in DRAWN if p not in drawn]
        axes.set_title(change + (f" (never back: {', '.join(never)})" if never else ""), fontsize=10)
        axes.set(xscale="log", ylim=(0, 100), ylabel="% of the runs")
        axes.grid(alpha=0.3)
        name_lines(axes, [(p, values[-1] / 100) for p, values in drawn.items()])
    all_axes[-1].set_xlabel("calls since the change until what is in use is within 2 % of the best")
    figure.savefig(path, metadata={"Date": None})

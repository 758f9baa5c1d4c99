# SPDX-License-Identifier: BSL-1.0
"""What knowledge of earlier runs is worth, on recorded times of arms, and what wrong knowledge costs.

Runs of the default policy, each of which begins with what all before it learnt (as the store keeps
it, joined.hpp). Wrong is what the same calls taught on another machine.
"""
import json
import statistics

from machine import run

RUNS, CALLS, MISLED_CALLS = 10, (30, 100, 1000), (100, 1000)
# Programs of few long calls; the first call also opens connections.
FEW_CALLS, FIRST_CALL = 10, 1.5


def replayed(replay, *arguments):
    return json.loads(run([replay, *map(str, arguments)], 3600))["results"]


def remember(replay, machines, seeds, noise):
    """Prints three tables; returns their rows."""
    again, few, misled = [], [], []
    for profile in (True, False):
        profile_of = {m.name: m.profile if profile else "-" for m in machines}
        found = [r for m in machines for r in replayed(
            replay, "again", profile_of[m.name], m.path_of_cells, seeds, noise, max(CALLS))]
        found_few = [r for m in machines for r in replayed(
            replay, "few", profile_of[m.name], m.path_of_cells, seeds, noise, FEW_CALLS, FIRST_CALL)]
        for number in (1, 2, 3, RUNS):
            of_run = [r for r in found_few if r["run"] == number]
            to_native = [r["ratio_to_native"] for r in of_run]
            few.append({
                "profile": profile, "run": number, "calls": FEW_CALLS, "first_call": FIRST_CALL,
                "ratio_to_best_arm": statistics.mean(r["ratio_to_best_arm"] for r in of_run),
                "ratio_to_native": statistics.mean(to_native),
                "lost": statistics.mean(max(0, r - 1) for r in to_native)})
            again.append({"profile": profile, "run": number, **{
                str(c): statistics.mean(r["ratio_to_best_arm"] for r in found
                                        if r["run"] == number and r["calls"] == c) for c in CALLS}})
        for calls in MISLED_CALLS:
            pairs = [(m, other) for m in machines for other in machines if m is not other]
            found = sorted(r["beyond_native"] for m, other in pairs for r in replayed(
                replay, "misled", profile_of[m.name], m.path_of_cells, other.path_of_cells, seeds,
                noise, calls))
            if found:
                misled.append({"profile": profile, "calls": calls, "runs": len(found),
                               "median": statistics.median(found),
                               "p95": found[len(found) * 95 // 100], "most": found[-1],
                               "above_20": sum(f > 20 for f in found) / len(found)})
    print(f"\n{seeds} seeds, noise {noise:.0%}; time over the best arm's, without setting up")
    for r in again:
        print(f"{'profile' if r['profile'] else 'no profile':>10}, run {r['run']:2}: "
              + ", ".join(f"{r[str(c)]:.4f} ({c} calls)" for c in CALLS))
    print(f"Runs of {FEW_CALLS} calls, the first of which takes {FIRST_CALL} times as long")
    for r in few:
        print(f"{'profile' if r['profile'] else 'no profile':>10}, run {r['run']:2}: "
              f"{r['ratio_to_best_arm']:.4f} of the best arm's time, {r['ratio_to_native']:.4f} of "
              f"native's; runs slower than native add {r['lost']:.4f}")
    print("Knowledge of another machine: native calls beyond always native")
    for r in misled:
        print(f"{'profile' if r['profile'] else 'no profile':>10}, {r['calls']:4} calls: median "
              f"{r['median']:.0f}, 95 % below {r['p95']:.0f}, most {r['most']:.0f}, above 20 in "
              f"{r['above_20']:.1%} of {r['runs']} runs")
    return {"again": again, "few": few, "misled": misled}

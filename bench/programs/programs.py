#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Programs that nobody here wrote, unmodified, with and without the preload library: do they come to
the same results?

    ninja -C BUILD railpass_preload_so
    python3 bench/programs/programs.py BUILD [--mpi openmpi|mpich] [--ranks 2] [names...]

With it all arms are tried in turn, so that every algorithm that the program can meet is met. What is
compared is said for each program below; the number of calls that were tuned is printed. On Debian 12:

    hpcc       hpcc: its own verdicts (Linpack, PTRANS, random access, FFT, ...)
    scalapack  scalapack-mpi-test, for Open MPI and MPICH: verdicts of its Fortran test programs
    mpi4py     python3-mpi4py, and its source distribution of the same version (`pip download --no-deps
               --no-binary mpi4py mpi4py==3.1.4`, unpacked, named by MPI4PY_SOURCE): its tests of
               collectives
    mpb        mpb-mpi: the frequencies of a photonic crystal

Programs that are not there are said to be left out. Needs some minutes; ends with 1 if anything differs.
"""

import argparse
import collections
import glob
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

SCALAPACK = "/usr/lib/x86_64-linux-gnu/scalapack"
SCALAPACK_TESTS = ("xdlu", "xzlu", "xdllt", "xdqr", "xcls", "xdinv", "xdtrd", "xdbrd")  # on 2 ranks, too
CRYSTAL = """(set! num-bands 4) (set! resolution 16)
(set! geometry-lattice (make lattice (size 1 1 no-size)))
(set! geometry (list (make cylinder (center 0 0 0) (radius 0.2) (height infinity)
                                    (material (make dielectric (epsilon 12))))))
(set! k-points (list (vector3 0.1 0.2 0) (vector3 0.5 0.5 0)))
(run-tm)
"""


class Missing(Exception):
    """A program that is not installed."""


def verdicts(text, pattern):
    """How often which one was given."""
    return dict(collections.Counter(re.findall(pattern, text)))


class Runner:
    """Runs a command on ranks, with and without the preload library."""

    def __init__(self, o, preload):
        self.o, self.preload = o, preload

    def run(self, folder, tuned, command, dump):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RAILPASS")}
        environment["RAILPASS_KNOWLEDGE"] = "off"  # each run is the first one
        if tuned:
            environment.update(LD_PRELOAD=self.preload, RAILPASS_POLICY="round_robin",
                               RAILPASS_LOG="stderr", RAILPASS_STATS=dump)
        done = subprocess.run([f"mpiexec.{self.o.mpi}", "-n", str(self.o.ranks), *command],
                              env=environment, cwd=folder, capture_output=True, text=True,
                              errors="replace", stdin=subprocess.DEVNULL, timeout=1200, check=False)
        said = [line for line in done.stderr.splitlines() if line.startswith("railpass: ")]
        if done.returncode != 0 or said:
            raise RuntimeError(f"{command}: status {done.returncode}, {said}\n{done.stdout[-2000:]}"
                               f"\n{done.stderr[-2000:]}")
        return done.stdout + done.stderr


def write_hpcc_input(folder, ranks, n=1000):
    if not shutil.which("hpcc"):
        raise Missing("the package hpcc, for Open MPI")
    with open("/usr/share/doc/hpcc/examples/_hpccinf.txt", encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"^2( +Ps)", r"1\1", text, flags=re.M)
    text = re.sub(r"^2( +Qs)", rf"{ranks}\1", text, flags=re.M)
    text = re.sub(r"^1000( +Ns)", rf"{n}\1", text, flags=re.M)
    with open(os.path.join(folder, "hpccinf.txt"), "w", encoding="utf-8") as file:
        file.write(text)


def hpcc(runner, folder, run):
    if runner.o.mpi != "openmpi":
        raise Missing("Debian's is for Open MPI")
    write_hpcc_input(folder, runner.o.ranks)
    run("hpcc")
    with open(os.path.join(folder, "hpccoutf.txt"), encoding="utf-8") as file:
        found = verdicts(file.read(), r"PASSED|FAILED|Success=\d|Found \d+ errors")
    return found


def scalapack(runner, folder, run):
    tests = [path for name in SCALAPACK_TESTS
             for path in glob.glob(f"{SCALAPACK}/{runner.o.mpi}-tests/{name}")]
    if not tests:
        raise Missing("the package scalapack-mpi-test")
    for path in glob.glob("/usr/share/scalapack/*.dat") + glob.glob("/usr/share/scalapack/BLACS/*"):
        shutil.copy(path, folder)
    return {os.path.basename(test): verdicts(run(test), r"PASSED|FAILED|\d+ tests completed")
            for test in tests}


def mpi4py(runner, folder, run):
    source = os.environ.get("MPI4PY_SOURCE", "")
    vendor = subprocess.run(["/usr/bin/python3", "-c",
                             "from mpi4py import MPI; print(MPI.get_vendor()[0])"], check=False,
                            capture_output=True, text=True).stdout.strip()
    if vendor != {"openmpi": "Open MPI", "mpich": "MPICH"}[runner.o.mpi] or not source:
        raise Missing("python3-mpi4py for this MPI and its source, named by MPI4PY_SOURCE")
    del folder
    text = run("/usr/bin/python3", os.path.join(source, "test", "runtests.py"), "-v", "-i", "test_cco_(buf|vec|obj)$")
    return verdicts(text, r"(?m)^Ran \d+ tests|^OK.*|^FAILED.*")


def mpb(runner, folder, run):
    if runner.o.mpi != "openmpi" or not shutil.which("mpb-mpi"):
        raise Missing("Debian's is for Open MPI, in the package mpb-mpi")
    with open(os.path.join(folder, "crystal.ctl"), "w", encoding="utf-8") as file:
        file.write(CRYSTAL)
    lines = [line for line in run("mpb-mpi", "crystal.ctl").splitlines() if line.startswith("tmfreqs:")]
    return {line.split(",")[1].strip(): [float(x) for x in line.split(",")[6:]] for line in lines[1:]}


def same(a, b):
    """Numbers up to rounding, everything else exactly."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return math.isclose(a, b, rel_tol=1e-5) if isinstance(a, float) else a == b


def main():
    programs = {f.__name__: f for f in (hpcc, scalapack, mpi4py, mpb)}
    options = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    options.add_argument("build")
    options.add_argument("names", nargs="*", default=[], help=", ".join(programs))
    options.add_argument("--mpi", choices=("openmpi", "mpich"), default="openmpi")
    options.add_argument("--ranks", type=int, default=2)
    o = options.parse_args()
    preload = os.path.abspath(os.path.join(o.build, "lib", "librailpass_preload.so"))
    if not os.path.exists(preload):
        sys.exit(f"{preload} is not there")
    runner, differ = Runner(o, preload), []
    for name in o.names or programs:
        results, calls = [], 0
        try:
            for tuned in (False, True):
                with tempfile.TemporaryDirectory() as folder:
                    dumps = []

                    def run(*command):
                        dumps.append(os.path.join(folder, f"dump{len(dumps)}.json"))
                        return runner.run(folder, tuned, command, dumps[-1])

                    results.append(programs[name](runner, folder, run))
                    for dump in filter(os.path.exists, dumps):
                        with open(dump, encoding="utf-8") as file:
                            calls += sum(c["calls"] for c in json.load(file)["contexts"])
        except Missing as what:
            print(f"{name}: left out, it needs {what}")
            continue
        good = same(*results) and bool(results[0]) and calls > 0
        print(f"{name}: {'the same' if good else 'DIFFERENT'}, {calls} calls were tuned; without: "
              f"{results[0]}" + ("" if good else f"; with: {results[1]}"), flush=True)
        if not good:
            differ.append(name)
    sys.exit(f"different: {', '.join(differ)}" if differ else 0)


if __name__ == "__main__":
    main()

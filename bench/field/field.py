#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What the first calls of a program cost by each MPI library, with railpass and with Intel's tuner.

    pip install --no-deps --prefix $PWD/intel impi_rt impi_devel  # and Debian's libfabric1
    I_MPI_ROOT=$PWD/intel LD_LIBRARY_PATH=$PWD/intel/lib cmake -S . -B build/intel \\
        -DRAILPASS_WITH_BOOST_MPI=OFF -DRAILPASS_DEVELOPER=OFF \\
        -DMPI_C_COMPILER=$PWD/intel/bin/mpigcc -DMPI_CXX_COMPILER=$PWD/intel/bin/mpigxx
    I_MPI_ROOT=$PWD/intel LD_LIBRARY_PATH=$PWD/intel/lib cmake --build build/intel -j2
    python3 bench/field/field.py --openmpi build/release --mpich build/mpich --intel intel \\
        --intel-build build/intel --cells broadcast:64KiB:1000,all_reduce:64KiB:1000 --json field.json

Hosts are emulated (bench/cluster), one rank each. Each row of the table is one plain MPI program
(first_calls.c), the same for all: alone; with the preload library that knows nothing; with it and
the profile that `railpass sample`, `bench` and `fit` made before, at other sizes than the cells';
for Intel MPI also with I_MPI_TUNING_MODE=auto. Intel runs MPICH's program, as their ABIs are one.
All take turns; a figure is the median over the repetitions, which the JSON has all of, and the
ratio is to the same library's own in the same turn. What is not given is left out.
"""
import argparse
import datetime
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIRST = (100, 1000)
TRIES = 3
BENCH_BYTES = "256,4KiB,32KiB,128KiB,512KiB"  # of the profiles
BENCH_TIMEOUT_S = 900
ENDING_S = 2  # MPICH 4.0 often hangs in MPI_Finalize (bench/cluster), when all has been measured
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}


def cell_argument(text):
    try:
        collective, size, calls = text.split(":")
        unit = next((u for u in UNITS if size.endswith(u)), "")
        bytes_ = int(size.removesuffix(unit)) * UNITS.get(unit, 1)
        if collective not in ("broadcast", "all_reduce") or bytes_ < 4 or int(calls) < FIRST[0]:
            raise ValueError
        return collective, bytes_, int(calls)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not like broadcast:64KiB:1000 (at least {FIRST[0]} calls)") from None


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--openmpi", type=Path, metavar="BUILD", help="railpass for Open MPI")
    parser.add_argument("--mpich", type=Path, metavar="BUILD", help="railpass for MPICH")
    parser.add_argument("--intel", type=Path, metavar="PREFIX", help="where impi_rt is")
    parser.add_argument("--intel-build", type=Path, metavar="BUILD",
                        help="railpass for the Intel MPI of --intel")
    parser.add_argument("--cells", type=lambda t: [cell_argument(c) for c in t.split(",")],
                        default="broadcast:64KiB:1000,all_reduce:64KiB:1000")
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--rate", default="200mbit")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--sample-budget", default="40s", help="of the profiles (default 40s)")
    parser.add_argument("--bench-budget", default="5m", help="of the profiles (default 5m)")
    parser.add_argument("--timeout", type=float, default=120,
                        help="of a launch, in seconds; one that hangs is tried again (default 120)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args()


def whole(text):
    """Whether first_calls' line of times has come whole."""
    return text.startswith("[") and text.endswith("]\n")


def is_measured(printed, writes):
    return writes.exists() if writes else whole(printed)


class Field:
    def __init__(self, o, directory):
        self.o = o
        self.directory = directory
        self.cluster = [sys.executable, str(HERE.parent / "cluster"), "--name", "field"]
        self.programs = {}
        self.hung = self.hung_at_end = 0
        self.profiles = {}
        self.environments = {}
        self.builds = {mpi: build for mpi, build in (
            ("openmpi", o.openmpi), ("mpich", o.mpich), ("intel", o.intel_build)) if build}

    def environment(self, mpi):
        return {**os.environ, **self.environments.get(mpi, {})}

    def run(self, mpi, command, variables=None, writes=None, timeout_s=None):
        """`writes`: the file, written as a whole, that is there when all has been measured; else
        that is what it prints."""
        print("bench/field:", mpi, Path(command[0]).name, *command[1:], file=sys.stderr)
        exported = [w for k, v in (variables or {}).items() for w in ("--env", f"{k}={v}")]
        for _ in range(TRIES):
            done = self.launch(
                [*self.cluster, "run", "--hosts", str(self.o.hosts), "--mpi", mpi,
                 "--timeout", str(timeout_s or self.o.timeout), *exported, "--", *map(str, command)],
                self.environment(mpi), writes)
            if done.returncode == 0 or is_measured(done.stdout, writes):
                return done.stdout
            if "did not end" not in done.stderr:
                break
            self.hung += 1
        sys.exit(f"bench/field: {' '.join(map(str, command))} ended with {done.returncode}\n"
                 + done.stderr)

    def launch(self, command, environment, writes):
        """Its output; a program that has measured all need not come to its end."""
        with (open(self.directory / "stdout", "w+") as out,
              open(self.directory / "stderr", "w+") as err):
            process = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
            measured = printed = None  # when, and what until then: who is ended may print more
            while process.poll() is None:
                time.sleep(0.1)
                if measured is None and is_measured((self.directory / "stdout").read_text(),
                                                    writes):
                    measured = time.monotonic()
                    printed = (self.directory / "stdout").read_text()
                if measured and time.monotonic() - measured > ENDING_S:
                    process.terminate()
                    process.wait()
                    self.hung_at_end += 1
            return subprocess.CompletedProcess(command, process.returncode,
                                               printed or (self.directory / "stdout").read_text(),
                                               (self.directory / "stderr").read_text())

    def compile(self, mpi):
        program = self.directory / f"first_calls.{mpi}"
        subprocess.run([f"mpicc.{mpi}", "-O2", "-o", program, HERE / "first_calls.c"], check=True)
        return program

    def measure_machine(self, mpi, build):
        samples, bench, profile = (self.directory / f"{mpi}.{what}.json"
                                   for what in ("samples", "bench", "profile"))
        railpass = build.resolve() / "lib/cli/railpass"
        self.run(mpi, [railpass, "sample", "--budget", self.o.sample_budget, "--json", samples],
                 writes=samples)
        self.run(mpi, [railpass, "bench", "--collectives", "broadcast,all_reduce", "--bytes",
                       BENCH_BYTES, "--budget", self.o.bench_budget, "--json", bench],
                 writes=bench, timeout_s=BENCH_TIMEOUT_S)
        subprocess.run([railpass, "fit", samples, bench, "-o", profile], check=True,
                       stdout=subprocess.DEVNULL, env=self.environment(mpi))
        self.profiles[mpi] = profile

    def rows(self):
        """(library, what, its variables)"""
        for mpi in self.programs:
            yield mpi, "own", {}
            if mpi == "intel":
                yield mpi, "its autotuner", {"I_MPI_TUNING_MODE": "auto"}
            if mpi in self.builds:
                tuned = {"LD_PRELOAD": self.builds[mpi].resolve() / "lib/librailpass_preload.so",
                         "RAILPASS_COLLECTIVES": "broadcast,all_reduce",
                         "RAILPASS_KNOWLEDGE": "off"}
                yield mpi, "railpass, cold", tuned
                yield mpi, "railpass, profile", {**tuned, "RAILPASS_PROFILE": self.profiles[mpi]}

    def prepare(self):
        for mpi in ("openmpi", "mpich"):
            if mpi in self.builds:
                self.programs[mpi] = self.compile(mpi)
        if self.o.intel:
            self.programs["intel"] = self.programs.get("mpich") or self.compile("mpich")
            root = self.o.intel.resolve()
            libraries = self.directory / "intel"
            libraries.mkdir()
            # What a program of Debian's MPICH looks for.
            (libraries / "libmpich.so.12").symlink_to(root / "lib/libmpi.so.12")
            self.environments["intel"] = {"I_MPI_ROOT": str(root), "I_MPI_PIN": "0",
                                          "LD_LIBRARY_PATH": f"{libraries}:{root}/lib"}
        for mpi, build in self.builds.items():
            self.measure_machine(mpi, build)

    def measure(self):
        rows = list(self.rows())
        results = []
        for collective, bytes_, calls in self.o.cells:
            for repetition in range(self.o.repetitions):
                turn = {}
                order = rows if repetition % 2 == 0 else rows[::-1]
                for mpi, what, variables in order:
                    text = self.run(mpi, [self.programs[mpi], collective, bytes_, calls], variables)
                    turn[mpi, what] = json.loads(text.strip().splitlines()[-1])
                for (mpi, what), seconds in turn.items():
                    own = turn[mpi, "own"]
                    for first in FIRST:
                        if first > calls:
                            continue
                        results.append({
                            "collective": collective, "bytes": bytes_, "mpi": mpi, "what": what,
                            "repetition": repetition, "calls": first,
                            "total_s": sum(seconds[:first]),
                            "ratio_to_own": sum(seconds[:first]) / sum(own[:first]),
                            "slowest_s": max(seconds[:first]),
                            "last_median_s": statistics.median(seconds[first * 9 // 10:first])})
        return results


def seconds(value):
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms"


def size(bytes_):
    for unit, factor in sorted(UNITS.items(), key=lambda u: -u[1]):
        if bytes_ % factor == 0:
            return f"{bytes_ // factor} {unit}"
    return f"{bytes_} B"


def table(results):
    """A row for each cell and way, with its first 100 calls and, of runs that long, 1000."""
    names = {"openmpi": "Open MPI", "mpich": "MPICH", "intel": "Intel MPI"}
    cells = {}
    for r in results:
        ways = cells.setdefault((r["collective"], r["bytes"]), {})
        ways.setdefault((r["mpi"], r["what"]), {}).setdefault(r["calls"], []).append(r)
    lines = ["| | library | |" + "".join(f" {first} calls | ratio |" for first in FIRST)
             + " slowest |", "|" + "---|" * (4 + 2 * len(FIRST))]
    for (collective, bytes_), ways in cells.items():
        cell = f"{collective} {size(bytes_)}"
        library = None
        for (mpi, what), runs in ways.items():
            line = f"| {cell} | {names[mpi] if mpi != library else ''} | {what} |"
            for first in FIRST:
                totals = [r["total_s"] for r in runs.get(first, [])]
                if totals:
                    ratio = statistics.median(r["ratio_to_own"] for r in runs[first])
                    line += (f" {seconds(statistics.median(totals))} ({seconds(min(totals))} .. "
                             f"{seconds(max(totals))}) | " + f"{ratio:.2f} |" * (what != "own")
                             + "|" * (what == "own"))
                else:
                    line += " | |"
            slowest = statistics.median(r["slowest_s"] for r in runs[max(runs)])
            lines.append(line + f" {seconds(slowest)} |")
            cell, library = "", mpi
    return "\n".join(lines)


def main():
    o = parse()
    if not (o.openmpi or o.mpich or o.intel):
        sys.exit("bench/field: nothing to measure; give --openmpi, --mpich or --intel")
    for build in (o.openmpi, o.mpich, o.intel_build):
        if build and not (build / "lib/librailpass_preload.so").exists():
            sys.exit(f"bench/field: {build} has no lib/librailpass_preload.so")
    if o.intel and not (o.intel / "bin/mpiexec.hydra").exists():
        sys.exit(f"bench/field: {o.intel} has no bin/mpiexec.hydra")
    if o.intel_build and not o.intel:
        sys.exit("bench/field: --intel-build needs --intel, the MPI library that it was built for")
    directory = Path(tempfile.mkdtemp(prefix="railpass-field-"))
    field = Field(o, directory)
    up = subprocess.run([*field.cluster, "up", "--hosts", str(o.hosts), "--rate", o.rate])
    if up.returncode != 0:
        return up.returncode  # 77: SKIPPED, and it has said why
    try:
        field.prepare()
        results = field.measure()
    finally:
        subprocess.run([*field.cluster, "down"])
        shutil.rmtree(directory)
    found = {"environment": {"measured_at": datetime.datetime.now(datetime.timezone.utc)
                             .strftime("%Y-%m-%dT%H:%M:%SZ"),
                             "cores": os.cpu_count(), "kernel": platform.release(),
                             "hosts": o.hosts, "rate": o.rate, "repetitions": o.repetitions,
                             "launches_that_hung": field.hung,
                             "launches_that_hung_at_end": field.hung_at_end},
             "results": results}
    if o.json:
        o.json.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{o.hosts} emulated hosts x {o.rate}, one rank each, {os.cpu_count()} cores; medians of "
          f"{o.repetitions} runs that take turns; {field.hung} launches hung and were repeated, "
          f"{field.hung_at_end} were ended after their times had been printed")
    print(table(results))
    return 0


def interrupted(number, _):
    sys.exit(128 + number)  # as an exception, so that the hosts are taken down


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, interrupted)
    sys.exit(main())

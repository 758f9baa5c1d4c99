#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What railpass is worth to applications that nobody here wrote: runs without and with the preload
library, in turn.

    ninja -C BUILD railpass_preload_so
    python3 bench/programs/applications.py BUILD [names...] [--pairs 12] [--hosts 4 --rate 200mbit] [--first]
        [--unchecked]

Without --hosts, each of 2 ranks has a core of its own. With it, each host that bench/cluster emulates has
one rank (root only). The first pair warms up and does not count. Tuned runs of an application share one
new knowledge folder, so that later runs start from what earlier runs learnt. --first adds a tuned run
without knowledge to each pair. --unchecked adds a tuned run without checks of results, and tells what checks
took: the ratio with/unchecked, and from statistics the shares of the calls' time and of whole runs. Tuned
runs print the summary, which itself costs up to 1 % of the collectives' time.

The time is the application's own, of its loop, where the table says so, otherwise the whole run's. The
ratio is the geometric mean of the pairs' ratios with/without, with its standard error; "whole" is the same
for whole runs, from mpiexec's start to its end; "first" is the ratio of the first pair, without knowledge
yet, or with --first the mean of all runs without knowledge. On Debian 12:

    espresso   quantum-espresso, quantum-espresso-data: self-consistent field of 8 atoms of silicon
    scalapack  libscalapack-openmpi-dev: eigenvectors of a symmetric matrix (applications/eigen.c)
    hpcc       hpcc: Linpack, PTRANS, random access, FFT, ...
    lammps     lammps: molten salt with PPPM
    petsc      libpetsc-real-dev: conjugate gradients (applications/cg.c)
    mumps      libmumps-dev: sparse factorizations, each solved for many times (applications/direct.c)
    dolfinx    python3-dolfinx-real: the heat equation (applications/heat.py)
    nwchem     nwchem-openmpi: vibrations of a molecule of water
    mpb        mpb-mpi: frequencies of a photonic crystal
    plain      broadcasts and all_reduces of 4 KiB to 1 MiB (applications/plain.c)
    transforms mpi4py-fft: Fourier transforms of a cube (applications/transforms.py), by all_to_allw; PyPI has the
               package, and --python names an interpreter that has it
    ft, is     NAS Parallel Benchmarks 3.4: Fourier transforms by all_to_all, and sorted integers by all_to_allv;
               --npb names their folder NPB3.4-MPI after `make ft CLASS=W` and `make is CLASS=A`; without --hosts
               the larger classes A and B

Applications that are not installed are said to be left out; a run that fails ends its application. Launched
as root, Open MPI needs OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1.
"""

import argparse
import dataclasses
import gzip
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from programs import CRYSTAL, Missing, write_hpcc_input

HERE = Path(__file__).resolve().parent
CLUSTER = [sys.executable, str(HERE.parent / "cluster"), "--name", f"applications{os.getpid()}x"]
SECONDS = r"time ([\d.]+) s"  # as the programs in applications/ print it
VERDICTS = ("faster", "slower", "cannot tell")
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "BLIS")}

SILICON = """&control pseudo_dir='.', outdir='.', disk_io='none' /
&system ibrav=1, celldm(1)=10.2, nat=8, ntyp=1, ecutwfc={cutoff} /
&electrons conv_thr=1e-10 /
ATOMIC_SPECIES
Si 28.086 Si.UPF
ATOMIC_POSITIONS crystal
Si 0 0 0
Si 0 0.5 0.5
Si 0.5 0 0.5
Si 0.5 0.5 0
Si 0.25 0.25 0.25
Si 0.25 0.75 0.75
Si 0.75 0.25 0.75
Si 0.75 0.75 0.27
K_POINTS automatic
2 2 2 1 1 1
"""
SALT = """units lj
atom_style charge
lattice fcc 0.6
region box block 0 {cells} 0 {cells} 0 {cells}
create_box 2 box
create_atoms 2 box basis 1 1 basis 2 1
mass * 1
set type 1 charge 1
set type 2 charge -1
velocity all create 1.5 1
pair_style lj/cut/coul/long 2.5
pair_coeff * * 1 1
kspace_style pppm 1e-3
neigh_modify delay 0 every 1 check yes
fix move all nve
timestep 0.002
thermo 1
run {steps}
"""
WATER = """start water
geometry
  O 0 0 0.117
  H 0 0.757 -0.469
  H 0 -0.757 -0.469
end
basis
  * library cc-pvdz
end
task {task}
"""


class Failed(Exception):
    """A run that did not end well, or told nothing."""


@dataclasses.dataclass
class Job:
    """Where an application is prepared, and for what machine."""
    folder: Path
    ranks: int
    hosts: bool
    python: str
    npb: str

    def size(self, here, on_hosts):
        return on_hosts if self.hosts else here

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return name

    def script(self, source, module, package):
        if subprocess.run([self.python, "-c", f"import {module}"], capture_output=True, check=False).returncode != 0:
            raise Missing(f"the package {package}")
        return [self.python, str(HERE / "applications" / source)]

    def compiled(self, source, *libraries):
        program = self.folder / Path(source).stem
        done = subprocess.run(["mpicc.openmpi", "-O2", HERE / "applications" / source, "-o", program, *libraries],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Missing(f"what {source} includes: {done.stderr[:200]}")
        return str(program)


def needed(path, package):
    """The path of a program or a file."""
    found = shutil.which(path)
    if not found and not os.path.exists(path):
        raise Missing(f"the package {package}")
    return found or path


def espresso(job):
    potential = needed("/usr/share/doc/quantum-espresso/examples/EPW/sic/pp/Si.pz-vbc.UPF.gz", "quantum-espresso-data")
    job.write("Si.UPF", gzip.decompress(Path(potential).read_bytes()).decode())
    name = job.write("silicon.in", SILICON.format(cutoff=job.size(60, 14)))
    return [needed("pw.x", "quantum-espresso"), "-in", name], r"PWSCF +:.*CPU +((?:\d+m *)?[\d.]+)s WALL"


def scalapack(job):
    return [job.compiled("eigen.c", "-lscalapack-openmpi", "-lm"), *job.size(("800", "15"), ("400", "6"))], SECONDS


def hpcc(job):
    if job.hosts:
        raise Missing("a real network: random access takes minutes on emulated hosts, without railpass, too")
    write_hpcc_input(job.folder, job.ranks, job.size(2000, 1000))
    return ["hpcc"], None


def lammps(job):
    name = job.write("salt.in", SALT.format(cells=job.size(8, 8), steps=job.size(800, 40)))
    return [needed("lmp", "lammps"), "-in", name], r"Loop time of ([\d.]+)"


def petsc(job):
    found = subprocess.run(["pkg-config", "--cflags", "--libs", "PETSc"], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise Missing("the package libpetsc-real-dev")
    return [job.compiled("cg.c", *found.stdout.split()), *job.size(("200", "500", "60"), ("200", "500", "16"))], SECONDS


def mumps(job):
    return [job.compiled("direct.c", "-ldmumps"), *job.size(("150", "6", "25"), ("100", "1", "3"))], SECONDS


def dolfinx(job):
    return [*job.script("heat.py", "dolfinx", "python3-dolfinx-real"), *job.size(("128", "250"), ("64", "80"))], SECONDS


def nwchem(job):
    if job.hosts:
        raise Missing("memory for one-sided messages, which Open MPI does not give it on emulated hosts")
    name = job.write("water.nw", WATER.format(task=job.size("dft freq numerical", "dft energy")))
    return [needed("nwchem.openmpi", "nwchem-openmpi"), name], None


def mpb(job):
    name = job.write("crystal.ctl", CRYSTAL.replace("resolution 16", f"resolution {job.size(448, 96)}"))
    return [needed("mpb-mpi", "mpb-mpi"), name], None


def plain(job):
    return [job.compiled("plain.c"), job.size("1000", "100")], SECONDS


def transforms(job):
    program = job.script("transforms.py", "mpi4py_fft", "mpi4py-fft of PyPI")
    return [*program, *job.size(("128", "40"), ("64", "24"))], SECONDS


def nas(job, program):
    return [needed(str(Path(job.npb).resolve() / "bin" / program), "NPB3.4-MPI, see --npb")], r"Time in seconds = +([\d.]+)"


def ft(job):
    return nas(job, job.size("ft.A.x", "ft.W.x"))


def is_(job):
    return nas(job, job.size("is.B.x", "is.A.x"))


APPLICATIONS = {f.__name__.rstrip("_"): f for f in (espresso, scalapack, hpcc, lammps, petsc, mumps, dolfinx, nwchem, mpb,
                                                    plain, transforms, ft, is_)}


@dataclasses.dataclass
class Run:
    own_s: float
    whole_s: float
    verdict: str
    checks_s: float = 0
    calls_s: float = 0


class Machine:
    """Runs programs here, a core for each rank, or on emulated hosts."""

    def __init__(self, o):
        self.o = o
        self.preload = str((Path(o.build) / "lib" / "librailpass_preload.so").resolve(strict=True))
        self.name = f"{o.hosts} hosts, {o.rate}" if o.hosts else f"{o.ranks} ranks, a core each"

    def __enter__(self):
        if self.o.hosts:
            subprocess.run([*CLUSTER, "up", "--hosts", str(self.o.hosts), "--rate", self.o.rate], check=True)
        return self

    def __exit__(self, *_):
        if self.o.hosts:
            subprocess.run([*CLUSTER, "down"], check=True)

    def start(self, variables):
        if self.o.hosts:
            exported = [word for name, value in variables.items() for word in ("--env", f"{name}={value}")]
            return [*CLUSTER, "run", "--hosts", str(self.o.hosts), "--rate", self.o.rate, *exported, "--"]
        exported = [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]
        return ["mpiexec.openmpi", "--bind-to", "core", "-n", str(self.o.ranks), *exported]

    def run(self, job, command, own_time, knowledge, stats, checked=True):
        """Tuned with that knowledge; without railpass if there is none."""
        variables = dict(ONE_THREAD)
        if knowledge:
            variables |= {"LD_PRELOAD": self.preload, "RAILPASS_ALL_RANKS": "on", "RAILPASS_SUMMARY": "on",
                          "RAILPASS_KNOWLEDGE": knowledge} | \
                ({"RAILPASS_STATS": stats} if stats else {}) | ({} if checked else {"RAILPASS_CHECKS": "0"})
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RAILPASS")}
        start = time.perf_counter()
        done = subprocess.run([*self.start(variables), *command], env=environment, cwd=job.folder, text=True,
                              capture_output=True, errors="replace", stdin=subprocess.DEVNULL, timeout=600, check=False)
        whole_s = time.perf_counter() - start
        own = [seconds_of(text) for text in re.findall(own_time, done.stdout)] if own_time else [whole_s]
        verdict = re.search(rf"(?m)^railpass: ({'|'.join(VERDICTS)}|nothing)", done.stderr)
        if done.returncode != 0 or not own or (knowledge and not verdict):
            raise Failed(f"{command}: status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        run = Run(sum(own), whole_s, verdict[1] if verdict else "")
        if knowledge and stats:
            contexts = json.loads(Path(stats).read_text())["contexts"]
            run.checks_s, run.calls_s = (sum(c[which] for c in contexts) for which in ("checks_s", "time_s"))
        return run


def seconds_of(text):
    """Of 76.5, or of 1m16.5 as Quantum Espresso prints it."""
    minutes, _, seconds = text.rpartition("m")
    return 60 * float(minutes or 0) + float(seconds)


def ratio(pairs):
    """The geometric mean of the ratios with/without, and its standard error."""
    logs = [math.log(with_s / without_s) for without_s, with_s in pairs]
    mean = math.exp(statistics.fmean(logs))
    return mean, mean * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.nan


def shown(pairs):
    return "{:.3f} +- {:.3f}".format(*ratio(pairs))


def cost_of_checks(own, checked):
    """The ratio with/unchecked, and the shares of checks in the runs with checks."""
    checks_s, calls_s, whole_s = (sum(getattr(run, which) for run in checked) for which in
                                  ("checks_s", "calls_s", "whole_s"))
    shares = " / ".join(f"{100 * checks_s / s:.2f} %" if s else "-" for s in (calls_s, whole_s))
    return [shown(list(zip(own["unchecked"], own["with"]))), shares]


def measure(machine, name, folder):
    """The table's row."""
    o = machine.o
    job = Job(folder, o.hosts or o.ranks, bool(o.hosts), o.python, o.npb)
    command, own_time = APPLICATIONS[name](job)
    ways = {"without": "", "with": str(folder / "knowledge")} | ({"first": "off"} if o.first else {}) | \
        ({"unchecked": str(folder / "unchecked")} if o.unchecked else {})
    runs = {way: [] for way in ways}
    for i in range(-1, o.pairs):  # -1 warms up
        for way in sorted(ways, reverse=i % 2 == 0):
            stats = (o.stats or o.unchecked) and str(
                Path(o.stats or folder).resolve() / f"{name}_{o.hosts}_{way}_{i}.json")
            done = machine.run(job, command, own_time, ways[way] if i >= 0 or way == "without" else "off", stats,
                               way != "unchecked")
            if i >= 0:
                runs[way].append(done)
                print(f"{name} {i} {way} {done.own_s:.3f} s, whole {done.whole_s:.3f} s {done.verdict}",
                      file=sys.stderr, flush=True)
    own, whole = ({way: [getattr(run, which) for run in runs[way]] for way in ways} for which in ("own_s", "whole_s"))
    pairs = list(zip(own["without"], own["with"]))
    verdicts = [run.verdict for run in runs["with"]]
    return [name, "loop" if own_time else "run", *(f"{statistics.median(own[way]):.2f} s" for way in ("without", "with")),
            shown(pairs), shown(list(zip(whole["without"], whole["with"]))),
            shown(list(zip(own["without"], own["first"]))) if o.first else f"{ratio(pairs[:1])[0]:.3f}",
            " / ".join(str(verdicts.count(v)) for v in VERDICTS),
            *(cost_of_checks(own, runs["with"]) if o.unchecked else [])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD")
    parser.add_argument("names", nargs="*", help=", ".join(APPLICATIONS))
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--ranks", type=int, default=2, help="here, a core each")
    parser.add_argument("--hosts", type=int, default=0, help="emulated, with a rank each")
    parser.add_argument("--rate", default="200mbit", help="of the hosts' links")
    parser.add_argument("--python", default="/usr/bin/python3", help="that has the modules of programs in Python")
    parser.add_argument("--npb", metavar="FOLDER", default=".", help="of the NAS Parallel Benchmarks")
    parser.add_argument("--first", action="store_true", help="also a tuned run without knowledge in each pair")
    parser.add_argument("--unchecked", action="store_true", help="also a tuned run without checks in each pair")
    parser.add_argument("--stats", metavar="FOLDER", help="where tuned runs leave their statistics")
    o = parser.parse_intermixed_args()
    if unknown := set(o.names) - set(APPLICATIONS):
        parser.error(f"{', '.join(unknown)}: expected some of {', '.join(APPLICATIONS)}")
    failed = []
    with Machine(o) as machine:
        columns = ["application", "time of", "without", "with", "ratio", "whole", "first", " / ".join(VERDICTS),
                   *(["with/unchecked", "checks of calls / of runs"] if o.unchecked else [])]
        print(f"{machine.name}; {o.pairs} pairs\n\n| {' | '.join(columns)} |\n{'|---' * len(columns)}|", flush=True)
        for name in o.names or APPLICATIONS:
            # Hosts have a /tmp of their own.
            with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="railpass-") as folder:
                try:
                    print(f"| {' | '.join(measure(machine, name, Path(folder)))} |", flush=True)
                except Missing as what:
                    print(f"| {name} | left out, it needs {what} |" + " |" * 6, flush=True)
                except Failed as what:
                    print(what, file=sys.stderr)
                    failed.append(name)
                    print(f"| {name} | failed |" + " |" * 6, flush=True)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()

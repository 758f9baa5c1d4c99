#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Test suites of peers with pinned arms: does each test that passes with the MPI library alone pass with
the preload library, too?

    python3 bench/programs/suites.py BUILD SUITE WORK [--mpi openmpi|mpich] [--tests PATTERN] [--ranks 2-5]
            [--seeds 0-9] [--hosts] [--jobs 1] [--limit 60] [--set NAME=VALUE]... [--python PYTHON] [--verbose]

SUITE is a folder outside the repository. The runner knows what is in it:

    MPICH      `test/mpi` of https://github.com/pmodels/mpich (`git checkout v4.0.2` for Debian 12's MPICH).
               The runner compiles the C programs that the files testlist name into WORK.
    mpi4py     the folder `test` of a source distribution of the installed version (`pip download --no-deps
               --no-binary mpi4py mpi4py==3.1.4`); --python names an interpreter that has mpi4py for --mpi
    IMB        the folder of https://github.com/intel/mpi-benchmarks after `make IMB-MPI1 CC="mpicc -w"
               CXX="mpicxx -w -DOMPI_SKIP_MPICXX" CPPFLAGS=-DCHECK`, so that it checks what it receives

Each test runs with the MPI library alone first. A test that does not pass so is left out and counted. Each other
test then runs once per seed with the preload library, tuned from the first call on and without knowledge. Seed and
test draw one arm for each collective, and with --hosts a host for each rank, as far as MPI_Get_processor_name
tells. --set adds settings of railpass, such as VERIFY=on. Statistics that rank 0 writes give the calls of each arm; an
arm that cannot run gives way to native. A failure is printed with the command that repeats it. The runner ends with 1
if a test fails that passes three more times without railpass.

For more ranks than cores: OMPI_MCA_rmaps_base_oversubscribe=1 and OMPI_MCA_mpi_yield_when_idle=1, or LD_PRELOAD of
BUILD/tests/libmpich_gives_way.so for MPICH.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import itertools
import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MARK = "SUITES_LAUNCH"  # all processes of a launch have it in their environment
MPICH_CONFIGURATION = "\n".join(f"#define {name}" for name in (
    "HAVE_STDARG_H 1", "HAVE_STRING_H 1", "HAVE_STDINT_H 1", "HAVE_UNISTD_H 1", "HAVE_SYS_TIME_H 1",
    "HAVE_SYS_RESOURCE_H 1", "HAVE_GETRUSAGE 1", "HAVE_LONG_DOUBLE 1", "HAVE_LONG_LONG 1", "HAVE_LONG_LONG_INT 1",
    "HAVE__BOOL 1", "HAVE_FLOAT__COMPLEX 1", "HAVE_DOUBLE__COMPLEX 1", "HAVE_LONG_DOUBLE__COMPLEX 1",
    "HAVE_MPI_WIN_CREATE 1", "HAVE_MPI_INIT_THREAD 1", "HAVE_PTHREAD_BARRIER_INIT 1", "POINTERINT_t long",
    "THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX")) + "\n"
DTPOOLS_CONFIGURATION = "".join(  # MPI 3 has removed these; Open MPI refuses them
    f"#undef MPI_Type_{name}\n#define MPI_Type_{name} MPI_Type_create_{name}\n" for name in ("hvector", "hindexed"))
MPICH_KEYS = {"arg", "timeLimit", "strict", "mpiversion"}  # of its lines; tests with others are left out
IMB_BENCHMARKS = ("Bcast", "Allreduce", "Reduce", "Reduce_scatter", "Reduce_scatter_block", "Allgather", "Allgatherv",
                  "Gather", "Gatherv", "Scatter", "Scatterv", "Alltoall", "Alltoallv", "Barrier")


@dataclasses.dataclass(frozen=True)
class Test:
    name: str
    ranks: int
    command: tuple
    folder: Path
    limit_s: float


def compiled(compiler, source, program, flags):
    """Whether the program is there, now or from an earlier run."""
    if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
        return True
    program.parent.mkdir(parents=True, exist_ok=True)
    part = f"{program}.{threading.get_ident()}"  # tests that run at the same time may share a program
    done = subprocess.run([compiler, source, "-o", part, "-w", *flags], stdin=subprocess.DEVNULL,
                          capture_output=True, check=False).returncode == 0
    if done:
        os.replace(part, program)
    return done


class Mpich:
    """Programs that the lines of files testlist name: NAME RANKS [KEY=VALUE]..."""

    def __init__(self, o):
        self.o, self.built = o, o.work / o.mpi
        include = self.built / "include"
        include.mkdir(parents=True, exist_ok=True)
        (include / "mpitestconf.h").write_text(MPICH_CONFIGURATION)
        (include / "mtest_mpix.h").touch()
        (self.built / "dtpoolsconf.h").write_text(DTPOOLS_CONFIGURATION)
        dtpools = o.suite / "dtpools"
        self.flags = ["-O1", "-pthread", f"-I{o.suite / 'include'}", f"-I{include}", f"-I{dtpools / 'include'}"]
        util = o.suite / "util"
        shared = [util / "mtest.c", util / "mtest_common.c", util / "dtypes.c", *sorted((dtpools / "src").glob("*.c"))]
        self.support = {kind: self.objects(shared + [util / f"mtest_{kind}.c"]) for kind in ("single", "thread")}

    @staticmethod
    def is_in(suite):
        return (suite / "util" / "mtest.c").exists()

    def objects(self, sources):
        objects = [self.built / "support" / f"{source.stem}.o" for source in sources]
        for source, made in zip(sources, objects):
            if not compiled(f"mpicc.{self.o.mpi}", source, made, ["-c", *self.flags]):
                sys.exit(f"{source} does not compile with mpicc.{self.o.mpi}")
        return objects

    @staticmethod
    def listed(text):
        """The name, ranks and other words of each line that names a test."""
        for line in text.splitlines():
            words = re.sub(r"@\w+@", "", line).split()
            if len(words) > 1 and not words[0].startswith("#") and words[1].isdigit():
                yield words[0], int(words[1]), [word.partition("=")[::2] for word in words[2:]]

    @staticmethod
    def made_from(makefile, name):
        """Source and flags of a program in a Makefile.am."""
        source = re.search(rf"(?m)^{name}_SOURCES *= *(\S+)$", makefile)
        flags = re.search(rf"(?m)^{name}_CPPFLAGS *= *(.*)$", makefile)
        return source[1] if source else f"{name}.c", re.findall(r"-D\S+", flags[1]) if flags else []

    def tests(self):
        for listing in sorted(self.o.suite.rglob("testlist*")):
            if listing.name in ("testlist", "testlist.in"):
                yield from self.tests_of(listing)

    def tests_of(self, listing):
        folder = listing.parent
        makefile = folder / "Makefile.am"
        makefile = makefile.read_text(errors="replace") if makefile.exists() else ""
        for name, ranks, keys in self.listed(listing.read_text(errors="replace")):
            source, flags = self.made_from(makefile, name)
            if not {key for key, _ in keys} <= MPICH_KEYS or not (folder / source).exists():
                continue
            ranks = min(max(ranks, self.o.ranks[0]), self.o.ranks[1])
            arguments = [value for key, value in keys if key == "arg"]
            program = self.built / folder.relative_to(self.o.suite) / name
            yield Test(" ".join([f"{folder.relative_to(self.o.suite)}/{name}", str(ranks), *arguments]), ranks,
                       (program, *arguments), folder, self.o.limit), (folder / source, flags)

    def build(self, test, how):
        source, flags = how
        kind = "thread" if "threads" in source.relative_to(self.o.suite).parts else "single"
        return compiled(f"mpicc.{self.o.mpi}", source, test.command[0],
                        [*self.flags, *flags, *self.support[kind], "-lm"])

    @staticmethod
    def passed(output):
        return output.count("No Errors") == 1


class Mpi4py:
    """Each class of tests by itself."""

    def __init__(self, o):
        self.o = o

    @staticmethod
    def is_in(suite):
        return (suite / "mpiunittest.py").exists()

    def tests(self):
        for file in sorted(self.o.suite.glob("test_*.py")):
            for name in re.findall(r"(?m)^class (Test\w+)\(", file.read_text(errors="replace")):
                for ranks in range(self.o.ranks[0], self.o.ranks[1] + 1):
                    yield Test(f"{file.stem}.{name} {ranks}", ranks, (self.o.python, file.name, name), self.o.suite,
                               self.o.limit), None

    def build(self, test, how):
        return True

    @staticmethod
    def passed(output):
        return bool(re.search(r"(?m)^Ran [1-9]\d* tests?", output))


class Imb:
    """Benchmarks that check what they receive."""

    def __init__(self, o):
        self.o = o

    @staticmethod
    def is_in(suite):
        return (suite / "IMB-MPI1").exists()

    def tests(self):
        for name, ranks in itertools.product(IMB_BENCHMARKS, range(self.o.ranks[0], self.o.ranks[1] + 1)):
            command = (self.o.suite / "IMB-MPI1", name, "-npmin", "2", "-iter", "10", "-msglog", "0:16")
            yield Test(f"{name} {ranks}", ranks, command, self.o.suite, self.o.limit), None

    def build(self, test, how):
        return True

    @staticmethod
    def passed(output):
        defects = re.findall(r"(?m)^ +\d+ +\d+ .* (\S+)$", output) if "defects" in output else []
        return "# All processes entering MPI_Finalize" in output and all(defect == "0.00" for defect in defects)


class Arms:
    """The arms of each collective, as `railpass algorithms` tells, and how often each one ran."""

    def __init__(self, railpass):
        said = subprocess.run([railpass, "algorithms", "--json", "-"], capture_output=True, text=True, check=True)
        self.known = {}
        for arm in json.loads(said.stdout):
            if arm["name"] != "native":
                self.known.setdefault(arm["collective"], []).append(arm)
        self.calls = collections.Counter()

    @staticmethod
    def fits(arm, ranks, hosts):
        """Whether so many ranks on such hosts may take it. Nothing is lost by a wrong yes: the call is native."""
        needs = " ".join(arm["needs"])
        least = re.search(r"at least (\d+) ranks", needs)
        return ((hosts or "several nodes" not in needs) and "several caches" not in needs
                and not (least and ranks < int(least[1])))

    def pins(self, draw, ranks, hosts):
        """RAILPASS_USE: one arm for each collective, with parameters in half of the cases."""
        pinned = []
        for collective, arms in sorted(self.known.items()):
            arm = draw.choice([arm for arm in arms if self.fits(arm, ranks, hosts)])
            parameters = [f"+{name}={draw.choice(values)}" for name, values in sorted(arm["parameters"].items())]
            pinned.append(f"{collective}:{arm['name']}{''.join(parameters if draw.random() < 0.5 else [])}")
        return ",".join(pinned)

    def count(self, file):
        """Adds the calls that a statistics dump tells of."""
        try:
            for context in json.loads(file.read_text())["contexts"]:
                for arm in context["arms"]:
                    self.calls[context["collective"], re.split(r"[+/ ]", arm["arm"])[0]] += int(arm["calls"])
        except (OSError, ValueError, KeyError, TypeError):
            pass  # the program has not come to its end, or tuned nothing

    def report(self):
        total = sum(number for (_, arm), number in self.calls.items() if arm != "native")
        print(f"{total} calls took arms of railpass:")
        for collective, arms in sorted(self.known.items()):
            names = list(dict.fromkeys(arm["name"] for arm in arms))
            ran = ", ".join(f"{name} {self.calls[collective, name]}" for name in names if self.calls[collective, name])
            never = ", ".join(name for name in names if not self.calls[collective, name])
            print(f"  {collective}: {ran or 'none ran'}; never ran: {never or 'none'}")


def kill_rest(mark):
    """Kills what is left of a launch: ranks and daemons may have left the launcher's process group."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            pass


class Runner:
    """Runs a test on its ranks, with and without the preload library."""

    def __init__(self, o, passed):
        self.o, self.passed = o, passed
        self.preload = o.build.resolve() / "lib" / "librailpass_preload.so"
        if not self.preload.exists():
            sys.exit(f"{self.preload} is not there")
        self.numbers = itertools.count()
        self.hosts = o.work / o.mpi / "libhosts.so"
        if o.hosts:
            source = self.hosts.with_suffix(".cpp")
            source.parent.mkdir(exist_ok=True)
            source.write_text(f'#include "{ROOT}/tests/support/named_hosts.hpp"\n')
            if not compiled(f"mpicxx.{o.mpi}", source, self.hosts, ["-std=c++20", "-shared", "-fPIC"]):
                sys.exit(f"{source} does not compile")

    def settings(self, arms, test, seed):
        """The environment of a test: all of it follows from the seed and the test."""
        draw = random.Random(f"{seed} {test.name}")
        hosts = "".join(draw.choice("0012") for _ in range(test.ranks)) if self.o.hosts else ""
        preloaded = [str(self.preload), *([str(self.hosts)] if hosts else []), os.environ.get("LD_PRELOAD", "")]
        return {"RAILPASS_USE": arms.pins(draw, test.ranks, len(set(hosts)) > 1), "RAILPASS_KNOWLEDGE": "off",
                "RAILPASS_ALL_RANKS": "on", "RAILPASS_FIRST_CALL": "on", **dict(self.o.set),
                **({"TEST_HOSTS": hosts} if hosts else {}), "LD_PRELOAD": ":".join(filter(None, preloaded))}

    def command(self, test):
        return [f"mpiexec.{self.o.mpi}", "-n", str(test.ranks), *map(str, test.command)]

    def problem(self, test, settings):
        """What is wrong with a run of the test, or nothing, and what it printed."""
        mark = f"{os.getpid()}.{next(self.numbers)}"
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RAILPASS")}
        environment.update(settings, **{MARK: mark})
        with tempfile.TemporaryFile() as output:
            with subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *self.command(test)], env=environment,
                                  cwd=test.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                  start_new_session=True) as process:
                try:
                    status = process.wait(test.limit_s)
                except subprocess.TimeoutExpired:
                    status = None
                finally:
                    kill_rest(mark)
            output.seek(0)
            said = output.read(1 << 20).decode(errors="replace")
        if status is None:
            return "does not end", said
        if status != 0:
            return f"ends with {status}", said
        return "" if self.passed(said) else "does not say that it passed", said

    def again(self, test, settings):
        variables = [f"{k}={v}" for k, v in settings.items()]
        return shlex.join(["env", "-C", str(test.folder), *variables, *self.command(test)])


class Suite:
    """Runs all tests and counts."""

    def __init__(self, o):
        kinds = [kind for kind in (Mpich, Mpi4py, Imb) if kind.is_in(o.suite)]
        if not kinds:
            sys.exit(f"{o.suite} is no suite that this program knows (--help lists them)")
        self.o, self.kind = o, kinds[0](o)
        self.arms = Arms(o.build / "lib" / "cli" / "railpass")
        self.runner = Runner(o, self.kind.passed)
        self.lock, self.counts, self.failures = threading.Lock(), collections.Counter(), []

    def passes_natively(self, job):
        test, how = job
        if not self.kind.build(test, how):
            return "not built"
        problem, said = self.runner.problem(test, {})
        if problem and self.o.verbose:
            print(f"natively {test.name} {problem}: {said[-500:]}", flush=True)
        return "fails natively" if problem else ""

    def run(self, test, seed):
        statistics = self.o.work / f"statistics.{threading.get_ident()}.json"
        statistics.unlink(missing_ok=True)
        settings = {**self.runner.settings(self.arms, test, seed), "RAILPASS_STATS": str(statistics)}
        problem, said = self.runner.problem(test, settings)
        with self.lock:
            self.counts["launches"] += 1
            self.arms.count(statistics)
        if problem:
            self.tell(test, seed, settings, problem, said)

    def tell(self, test, seed, settings, problem, said):
        also_native = any(self.runner.problem(test, {})[0] for _ in range(3))
        with self.lock:
            self.failures += [] if also_native else [f"{test.name} (seed {seed})"]
            self.counts["without railpass, too"] += also_native
            print(f"FAILED{', sometimes without railpass, too' if also_native else ''}: {test.name} (seed {seed}) "
                  f"{problem}\n{said[-3000:]}\nagain: {self.runner.again(test, settings)}\n", flush=True)

    def native_list(self, pool):
        """The tests that pass with the MPI library alone."""
        jobs = [job for job in dict(self.kind.tests()).items() if re.search(self.o.tests, job[0].name)]
        reasons = list(pool.map(self.passes_natively, jobs))
        native = [test for (test, _), reason in zip(jobs, reasons) if not reason]
        left_out = collections.Counter(filter(None, reasons))
        print(f"{len(jobs)} tests, {len(native)} pass with the MPI library alone; left out: "
              f"{dict(left_out) or 'none'}", flush=True)
        return native

    def run_all(self):
        pool = concurrent.futures.ThreadPoolExecutor(self.o.jobs)
        try:
            native = self.native_list(pool)
            low, high = self.o.seeds
            for done in [pool.submit(self.run, test, seed) for seed in range(low, high + 1) for test in native]:
                done.result()
        except KeyboardInterrupt:
            print("interrupted; until now:")
        finally:
            pool.shutdown(cancel_futures=True)
        self.report()
        return 1 if self.failures or not self.counts["launches"] else 0

    def report(self):
        self.arms.report()
        print(f"{self.counts['launches']} launches with railpass; failures: {len(self.failures)}, and "
              f"{self.counts['without railpass, too']} of tests that do not always pass without railpass")
        for failure in sorted(self.failures):
            print(f"  {failure}")


def numbers(said):
    first, _, last = said.partition("-")
    return int(first), int(last or first)


def setting(said):
    name, _, value = said.partition("=")
    return f"RAILPASS_{name.removeprefix('RAILPASS_')}", value


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("build", type=Path)
    options.add_argument("suite", type=lambda said: Path(said).resolve())
    options.add_argument("work", type=lambda said: Path(said).resolve(), help="folder for what is built")
    options.add_argument("--mpi", choices=("openmpi", "mpich"), default="openmpi")
    options.add_argument("--tests", default="", help="regular expression: only tests whose names it finds")
    options.add_argument("--ranks", type=numbers, default=(2, 5), help="the fewest and the most")
    options.add_argument("--seeds", type=numbers, default=(0, 0))
    options.add_argument("--hosts", action="store_true", help="as if ranks were on up to three hosts")
    options.add_argument("--jobs", type=int, default=1, help="tests at a time")
    options.add_argument("--limit", type=float, default=60, help="seconds for a launch")
    options.add_argument("--set", type=setting, action="append", default=[], help="a setting of railpass, NAME=VALUE")
    options.add_argument("--python", default="/usr/bin/python3", help="interpreter for mpi4py's tests")
    options.add_argument("--verbose", action="store_true", help="say why tests fail natively")
    o = options.parse_args()
    o.work.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the report is printed, too
    sys.exit(Suite(o).run_all())


if __name__ == "__main__":
    main()

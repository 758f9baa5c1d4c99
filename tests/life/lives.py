# SPDX-License-Identifier: BSL-1.0
"""Starts programs drawn from seeds: they must end as they mean to, and find no difference between
what MPI promises and what came.

    lives.py --program random_life --mpiexec mpiexec [--preload librailpass_preload.so]
             [--seeds 0-199] [--ranks 2-5] [--lives 5] [--without threads,many] [--limit 60]
             [--endings finalize,abort] [--rails] [--set NAME=VALUE]... [--failures 5]

The build writes a script `lives` into its folder tests that gives the first three; `--preload ""`
after it runs the programs with the MPI library alone, which shows that they are right. A launch has
the lives of --lives seeds and one end. All about it follows from its first seed, so that the command
which is printed repeats what failed. A launch in which no rank does anything for --limit seconds
hangs. groups.hpp has the names for --without.
"""

import argparse
import os
import random
import re
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ALGORITHMS = Path(__file__).resolve().parents[2] / "collectives" / "algorithms.def"
FINALIZED = ("finalize", "atexit", "destructor", "caught")
ENDINGS = FINALIZED + ("abort", "exit", "uncaught")
SIGNALS_OF_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
# record.hpp: pid, rank, lives, calls, differences, ended; what each thread does; what differed.
NUMBERS, DOING, THREADS = struct.Struct("=6q"), 256, 3


class Record:
    """What a rank left of itself."""

    def __init__(self, file):
        data = file.read_bytes()
        if len(data) < NUMBERS.size:  # just being made
            data = bytes(NUMBERS.size)
        self.pid, self.rank, self.lives, self.calls, self.differences, self.ended = (
            NUMBERS.unpack_from(data))
        texts = data[NUMBERS.size:]
        self.doing = [text(texts[i * DOING:(i + 1) * DOING]) for i in range(THREADS)]
        self.said = text(texts[THREADS * DOING:])

    def __str__(self):
        threads = "\n".join(f"    thread {i}: {t}" for i, t in enumerate(self.doing) if t)
        return (f"  rank {self.rank}: {self.lives} lives, {self.calls} calls, "
                f"{self.differences} differences, {'at its end' if self.ended else 'not ended'}\n"
                f"{threads}")


def text(data):
    return data.split(b"\0")[0].decode(errors="replace")


def arms():
    """The arms of each collective but the MPI library's own."""
    found = {}
    for collective, arm in re.findall(r'collectives/(\w+)/(\w+)\.hpp"', ALGORITHMS.read_text()):
        if arm != "native":
            found.setdefault(collective, []).append(arm)
    return found


class Launch:
    """All that follows from the first seed."""

    def __init__(self, first, lives, options):
        draw = random.Random(first)
        self.first, self.lives = first, lives
        low, high = options.ranks
        self.ranks = draw.randint(low, high)
        self.ending = draw.choice(ENDINGS)
        self.threads = draw.choice(("single", "multiple", "multiple"))
        self.settings = {}
        self.keeps_statistics = draw.random() < 0.5
        self.is_traced = draw.random() < 0.4
        how = draw.choice(("default", "round_robin", "pins", "pins", "pins", "star_mpi", "ucb"))
        if how == "pins":
            self.settings["USE"] = ",".join(
                f"{collective}:{draw.choice(names)}" for collective, names in arms().items()
                if draw.random() < 0.8)
        elif how != "default":
            self.settings["POLICY"] = how
        for name, chance, values in (
                ("ALL_RANKS", 0.6, ("on",)),  # without it nothing is tuned with threads
                ("FIRST_CALL", 0.4, ("on",)),
                ("CONTEXTS", 0.15, ("1", "3")), ("MIN_BYTES", 0.1, ("8", "1KiB")),
                ("SCRATCH_LIMIT", 0.1, ("0", "4KiB")), ("REPRODUCIBLE", 0.1, ("1",)),
                ("VERIFY", 0.1, ("1",)), ("SUMMARY", 0.3, ("1",)), ("SEED", 0.3, ("7",)),
                ("COLLECTIVES", 0.1, ("barrier,all_reduce", "broadcast,gatherv,scan")),
                ("CHECKS", 0.3, ("0", "1000000"))):
            value = draw.choice(values)
            if draw.random() < chance:
                self.settings[name] = value
        self.is_traced = self.is_traced and "USE" not in self.settings  # pinned calls are not
        # A digit for the host of each rank; none: all are on one.
        hosts = "".join(draw.choice("0012") for _ in range(self.ranks))
        self.hosts = hosts if draw.random() < 0.4 else ""
        if options.rails:
            self.settings["RAILS"] = draw.choice(("mpi", "127.0.0.2", "127.0.0.2,127.0.0.3",
                                                  "mpi,127.0.0.2"))
        self.settings.update(options.set)
        if options.endings and self.ending not in options.endings:
            self.ending = draw.choice(options.endings)

    def __str__(self):
        settings = " ".join(f"RAILPASS_{k}={v}" for k, v in self.settings.items())
        where = f" on hosts {self.hosts}" if self.hosts else ""
        return (f"seeds {self.first}-{self.first + self.lives - 1}, {self.ranks} ranks{where}, threads "
                f"{self.threads}, ending {self.ending} {settings}")


class Outcome:
    """What came of a launch: `problem` is empty if nothing is wrong."""

    def __init__(self, launch, options):
        self.calls = self.lives = self.tuned = 0
        with tempfile.TemporaryDirectory() as folder:
            self.records, self.folder = [], Path(folder)
            (self.folder / "records").mkdir()
            self.problem = self.run(launch, options)
            log = self.folder / "log"
            self.said = (self.folder / "output").read_text(errors="replace")[-3000:]
            self.said += log.read_text(errors="replace")[-2000:] if log.exists() else ""
            for trace in self.folder.glob("trace.*"):
                lines = [line.split(",") for line in trace.read_text().splitlines()[1:]]
                self.tuned += sum(len(line) > 5 and line[5] != "native" for line in lines)
        self.calls = sum(r.calls for r in self.records)
        self.lives = min((r.lives for r in self.records), default=0)

    def read_records(self):
        self.records = sorted((Record(f) for f in (self.folder / "records").iterdir()),
                              key=lambda r: r.rank)

    def run(self, launch, options):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RAILPASS")}
        # What a seed finds depends on nothing else.
        environment.update(RAILPASS_KNOWLEDGE="off", RAILPASS_CONF="", RAILPASS_SITE="")
        environment.update(LIFE_ENDING=launch.ending, LIFE_THREADS=launch.threads)
        if launch.hosts:
            environment["TEST_HOSTS"] = launch.hosts
        if options.preload:
            environment.update({f"RAILPASS_{k}": v for k, v in launch.settings.items()},
                               LD_PRELOAD=preloaded(options.preload),
                               RAILPASS_LOG=str(self.folder / "log"))
            if launch.keeps_statistics:
                environment["RAILPASS_STATS"] = str(self.folder / "stats.json")
            if launch.is_traced:
                environment["RAILPASS_TRACE"] = str(self.folder / "trace")
        # However this ends, the launcher ends with it, and the ranks with that.
        command = ["setpriv", "--pdeathsig", "KILL", options.mpiexec, "-n", str(launch.ranks), options.program,
                   str(self.folder / "records"), str(launch.first), str(launch.lives),
                   options.without]
        with open(self.folder / "output", "wb") as output:
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=output, start_new_session=True)
            hangs = self.wait(process, options.limit)
        self.read_records()
        if hangs:
            return "hangs"
        code = process.returncode
        if launch.ending in FINALIZED and code != 0:
            return f"ends with {code}"
        if launch.ending in ("abort", "uncaught") and code == 0:
            return "ends with 0"
        if any(code in (-number, 128 + number) for number in SIGNALS_OF_CRASHES):
            return f"crashes with {code}"
        if len(self.records) != launch.ranks or any(r.lives < launch.lives for r in self.records):
            return f"ends too early, with {code}"
        if not (all if launch.ending in FINALIZED else any)(r.ended for r in self.records):
            return f"does not reach its end, but ends with {code}"
        return "has differences" if any(r.differences for r in self.records) else ""

    def wait(self, process, limit_s):
        """Whether it hung. Nothing of it is left."""
        try:
            return self.hangs(process, limit_s)
        finally:
            self.end(process)

    def hangs(self, process, limit_s):
        seen, since = None, time.monotonic()
        while time.monotonic() < since + limit_s:
            try:
                process.wait(timeout=1)
                return False
            except subprocess.TimeoutExpired:
                self.read_records()
                now = [(r.pid, r.lives, r.calls, r.doing) for r in self.records]
                if now != seen:
                    seen, since = now, time.monotonic()
        return True

    def end(self, process):
        self.read_records()
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        for record in self.records:  # ranks may be no children of the launcher's group
            try:
                if str(self.folder).encode() in Path(f"/proc/{record.pid}/cmdline").read_bytes():
                    os.kill(record.pid, signal.SIGKILL)
            except OSError:
                pass


def preloaded(library):
    """LD_PRELOAD: the library before what is preloaded anyway."""
    return ":".join(filter(None, (library, os.environ.get("LD_PRELOAD"))))


def numbers(said):
    first, _, last = said.partition("-")
    return int(first), int(last or first)


def setting(said):
    name, _, value = said.partition("=")
    return name.removeprefix("RAILPASS_"), value


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--preload", default="")
    parser.add_argument("--seeds", type=numbers, default=(0, 199))
    parser.add_argument("--ranks", type=numbers, default=(2, 5))
    parser.add_argument("--lives", type=int, default=5)
    parser.add_argument("--without", default="lone_errors")
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--endings", type=lambda said: said.split(","), default=[])
    parser.add_argument("--rails", action="store_true")
    parser.add_argument("--set", type=setting, action="append", default=[])
    parser.add_argument("--failures", type=int, default=5)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    launches = failures = lives = calls = tuned = traced = 0
    for first in range(options.seeds[0], options.seeds[1] + 1, options.lives):
        launch = Launch(first, min(options.lives, options.seeds[1] + 1 - first), options)
        outcome = Outcome(launch, options)
        launches += 1
        lives += outcome.lives
        calls += outcome.calls
        if launch.is_traced:
            traced += outcome.calls
            tuned += outcome.tuned
        if outcome.problem:
            failures += 1
            print(f"FAILED: {outcome.problem}: {launch}")
            print(*outcome.records, sep="\n")
            print(*sorted({line for r in outcome.records for line in r.said.splitlines()}), sep="\n")
            print(outcome.said)
            again = [*sys.argv, "--seeds", f"{first}-{first + launch.lives - 1}"]
            print(f"again: {shlex.join([sys.executable, *again])}\n", flush=True)
            if failures == options.failures:
                break
    print(f"{lives} lives in {launches} launches, {calls} calls on all ranks, {failures} launches "
          f"failed; of {traced} calls that were traced {tuned} took an arm of railpass's")
    if options.preload and traced > 10000 and tuned == 0:
        print("no call was tuned")
        return 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: BSL-1.0
"""Machines that SimGrid's SMPI simulates, and what bench/regret and the scripts here do on them."""
import concurrent.futures
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MACHINES = os.path.join(HERE, "machines")

COMMON = ["--cfg=smpi/simulate-computation:no", "--cfg=smpi/wtime:0", "--cfg=smpi/test:0",
          "--cfg=smpi/host-speed:1f",
          "--cfg=smpi/display-timing:no", "--log=root.thresh:critical",
          "--cfg=network/crosstraffic:0", "--cfg=smpi/async-small-thresh:0"]
# What a message costs its ends. Ethernet keeps SMPI's factors, which were calibrated on TCP.
TRANSPORTS = {
    "ethernet": [*(f"--cfg=smpi/{o}:0:3e-6:1e-10" for o in ("os", "ois", "or")),
                 "--cfg=smpi/send-is-detached-thresh:65536"],
    "fabric": ["--cfg=smpi/bw-factor:0:0.95", "--cfg=smpi/lat-factor:16384:2.5;0:1",
               *(f"--cfg=smpi/{o}:0:2e-7:2e-11;16384:3e-7:0" for o in ("os", "ois", "or")),
               "--cfg=smpi/send-is-detached-thresh:16384"],
}
# The algorithms that SMPI's selectors choose ask all ranks of each new communicator who shares a host,
# in P^2 messages: with 1024 ranks that takes minutes.
OF_LARGE_MACHINES = ["--cfg=smpi/bcast:binomial_tree", "--cfg=smpi/allreduce:rdb",
                     "--cfg=smpi/reduce:binomial"]
# Each rank is a copy of the program with thread-local variables in glibc's static block.
# All ranks are one process: there is no memory that only some of them share.
# No threads: SMPI's clock is for ranks alone.
ENVIRONMENT = {"RAILPASS_LOG": "", "RAILPASS_KNOWLEDGE": "off", "RAILPASS_SITE": "",
               "RAILPASS_SHARED_MEMORY": "0", "RAILPASS_HANG_REPORT": "0",
               "GLIBC_TUNABLES": f"glibc.rtld.optional_static_tls={1 << 20}"}
LARGEST_RATIO = 12
BENCH_BYTES = [1 << 8, 1 << 12, 1 << 15, 1 << 17, 1 << 19]
BENCH_RUNS, BENCH_SPREAD = 100, 0.1  # of each arm, as the file of the bench says
BENCH_SECONDS = 60  # real time for the arms of one collective and size
ARMS_AT_ONCE = 12  # a simulation slows down with the messages it has seen


class Failure(Exception):
    pass


def run(command, timeout, **more):
    """Output of a command that must succeed in time; what it started ends with it."""
    try:
        child = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, text=True,
                                 stderr=subprocess.PIPE, start_new_session=True, **more)
    except OSError as problem:
        raise Failure(str(problem)) from problem
    name = os.path.basename(str(command[0]))
    try:
        output, errors = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired as problem:
        raise Failure(f"{name} took more than {timeout:.0f} s") from problem
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
    if child.returncode != 0:
        raise Failure(f"{name} failed:\n" + "\n".join((errors or output).splitlines()[-12:]))
    return output


def program(build, *names):
    for name in names:
        path = os.path.join(build, name)
        if os.access(path, os.X_OK):
            return path
    raise Failure(f"{build}: found no {names[0]}; build the targets railpass_cli and regret_replay")


def bench_file(machine_id, ranks, ranks_per_node, times):
    """What railpass bench writes, as if it had run each arm often; times: (collective, size, arm, seconds)."""
    return {"format": "railpass bench", "version": 1, "learning": [],
            "environment": {"machine_id": machine_id, "measured_at": "", "notes": {}, "num_ranks": ranks,
                            "ranks_per_node": ranks_per_node},
            "results": [{"collective": collective, "bytes": size, "arm": arm, "median_s": seconds,
                         "p90_s": seconds, "spread_s": BENCH_SPREAD * seconds, "runs": BENCH_RUNS,
                         "ratio_to_native": None} for collective, size, arm, seconds in times]}


def segment_bytes(arm):
    found = re.search(r"segment_bytes=(\d+)([KM]i)?B", arm)
    return int(found[1]) * {None: 1, "Ki": 1 << 10, "Mi": 1 << 20}[found[2]] if found else 0


def built_simulation(build):
    """The program that smpirun runs, built in DIR/simgrid."""
    smpi = os.path.join(build, "simgrid")
    os.makedirs(smpi, exist_ok=True)
    launcher = []
    if subprocess.run(["sh", "-c", "command -v ccache"], capture_output=True).returncode == 0:
        launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]
    run(["cmake", "-S", HERE, "-B", smpi, "-DCMAKE_CXX_COMPILER=smpicxx", *launcher], 120,
        env={**os.environ, "SMPI_PRETEND_CC": "1"})
    run(["cmake", "--build", smpi, "-j2"], 3600)
    return os.path.join(smpi, "simulated_machine")


def find_programs(options):
    """railpass of options.build, and the program that smpirun runs, built if need be."""
    build = os.path.abspath(options.build)
    options.railpass = program(build, "lib/cli/railpass", "railpass")
    options.machine_program = built_simulation(build)


class Machine:
    """A platform file of SimGrid; its comment says how many ranks it is for. Where it has
    "sampled_by", so many of them sample, and SMPI's own collectives are always the same. Where it
    has "drawn_from", the job's nodes are drawn from so many, always the same ones."""

    def __init__(self, path, work, options):
        self.path, self.work, self.options = os.path.abspath(path), work, options
        self.name = os.path.splitext(os.path.basename(path))[0]
        try:
            with open(path) as file:
                said = re.search(r"railpass: (\{.*\})", file.read())
        except OSError as problem:
            raise Failure(str(problem)) from problem
        if not said:
            raise Failure(f'{path}: expected a comment railpass: {{"ranks": ..., "ranks_per_node": '
                          f'..., "transport": ...}}')
        facts = json.loads(said[1])
        self.ranks, self.ranks_per_node = facts["ranks"], facts["ranks_per_node"]
        self.is_large = "sampled_by" in facts
        self.transport = TRANSPORTS[facts["transport"]] + self.is_large * OF_LARGE_MACHINES
        nodes = range(-(-self.ranks // self.ranks_per_node))
        if "drawn_from" in facts:
            nodes = random.Random(1).sample(range(facts["drawn_from"]), len(nodes))
        self.hosts = [f"n-{nodes[rank // self.ranks_per_node]}" for rank in range(self.ranks)]
        self.sampling_hosts = self.hosts[::self.ranks // facts.get("sampled_by", self.ranks)]
        self.platform = self.path
        if path.endswith(".cpp"):
            self.platform = os.path.join(work, self.name + ".so")
            run(["c++", "-std=c++17", "-O1", "-fPIC", "-shared", self.path, "-o", self.platform,
                 "-lsimgrid"], 300)
        self.profile = os.path.join(work, self.name + ".profile.json")
        self.samples_only = os.path.join(work, self.name + ".samples-only.json")

    def simulate(self, *arguments, selector="ompi", timeout=600, environment=None, slow=None,
                 empty=None, calls=None, hosts=None):
        """What the program writes. `slow`: see slow_links.hpp. `empty`: share of the blocks of an
        all_to_allv. `calls`: of each arm, the quickest counts. `hosts`: of each rank."""
        hosts = hosts or self.hosts
        with tempfile.NamedTemporaryFile(dir=self.work, suffix=".json") as out, \
                tempfile.NamedTemporaryFile("w", dir=self.work, suffix=".hosts") as host_file:
            host_file.write("\n".join(hosts) + "\n")
            host_file.flush()
            verb, *rest = arguments
            run(["smpirun", "-np", len(hosts), "-platform", self.platform, "-hostfile",
                 host_file.name, *COMMON, *self.transport, f"--cfg=smpi/coll-selector:{selector}",
                 self.options.machine_program, *([f"--slow={slow}"] if slow else []),
                 *([f"--empty={empty}"] if empty else []),
                 *([f"--calls={calls}"] if calls else []), verb, out.name, *rest], timeout,
                env={**os.environ, **ENVIRONMENT, **(environment or {})})
            text = out.read()
        if not text:
            raise Failure(f"{self.name}: {' '.join(map(str, arguments[:3]))} ended early")
        return json.loads(text)

    def fit(self, cells):
        """Profiles as railpass fit makes them, with times of native alone and of all arms."""
        samples = self.simulate("samples", hosts=self.sampling_hosts)
        samples["machine_id"]["num_hosts"] = len(set(self.hosts))
        times = []
        for collective, size in cells:
            try:
                native = self.simulate("native", collective, size)
            except Failure as problem:
                print(f"{self.name}: {problem}", file=sys.stderr)
                continue
            times.append((collective, size, "native", native["seconds"]))
        self.write_profile(samples, times, self.samples_only)
        # Not the sizes of the cells.
        benched = [(collective, size) for collective in dict.fromkeys(c for c, _ in cells)
                   for size in BENCH_BYTES]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for cell, arms in zip(benched, pool.map(lambda c: self.bench(*c), benched)):
                times += [(*cell, a["arm"], a["seconds"]) for a in arms]
        self.write_profile(samples, times, self.profile)

    def write_profile(self, samples, times, path):
        """From what railpass sample and railpass bench write."""
        bench = bench_file(samples["machine_id"], self.ranks, self.ranks_per_node, times)
        names = []
        for kind, content in (("samples", samples), ("bench", bench))[:2 if times else 1]:
            names.append(f"{path[:-len('.json')]}.{kind}.json")
            with open(names[-1], "w") as file:
                json.dump(content, file)
        run([self.options.railpass, "fit", *names, "-o", path], 120)

    def bench(self, collective, size):
        """Times of all arms, as `railpass bench` takes them, as far as real time reaches: those
        predicted to be the fastest first."""
        names = [p["arm"] for p in self.predicted(collective, size, self.samples_only)]
        try:
            return self.times(collective, size, names, BENCH_SECONDS)["arms"]
        except Failure as problem:
            print(f"{self.name}: no bench: {problem}", file=sys.stderr, flush=True)
            return []

    def arms(self, collective, size, profile):
        """Native, and the arms to time, those predicted to be the fastest first."""
        return ["native"] + [p["arm"] for p in self.predicted(collective, size, profile)]

    def predicted(self, collective, size, profile):
        """What the profile says about all arms but native and those that are far too slow, the
        fastest first."""
        said = json.loads(run([self.options.railpass, "predict", "--profile", profile,
                               "--collective", collective, "-p", self.ranks, "--ranks-per-node",
                               self.ranks_per_node, "--bytes", size, "--json", "-"], 120))
        # A segment as large as the message is none.
        known = [p for p in said["predictions"] if p["arm"] != "native" and p["predicted_s"]
                 and segment_bytes(p["arm"]) < size]
        best = min(p["predicted_s"] for p in known)
        return [p for p in known if p["predicted_s"] <= LARGEST_RATIO * best]

    def times(self, collective, size, names, seconds, slow=None, empty=None, calls=None):
        """What a call takes with each of these arms, as far as `seconds` of real time reach; and
        merges. Arms that SMPI cannot run are left out."""
        began = time.monotonic()
        found = {"arms": []}
        waiting = [names[i:i + ARMS_AT_ONCE] for i in range(0, len(names), ARMS_AT_ONCE)]
        while waiting:
            left_s = seconds - (time.monotonic() - began)
            if left_s <= 0:
                break
            some = waiting.pop(0)
            try:
                timed = self.simulate("arms", collective, size, left_s, *some, slow=slow,
                                      empty=empty, calls=calls, timeout=seconds + 30 + self.ranks / 4)
            except Failure as problem:
                half = len(some) // 2
                if half:
                    waiting[:0] = [some[:half], some[half:]]
                else:
                    print(f"{self.name}, {collective}, {size} bytes: without {some[0]}: "
                          f"{str(problem).splitlines()[0]}", file=sys.stderr, flush=True)
                continue
            found = {**timed, "arms": found["arms"] + timed["arms"]}
        if not found["arms"]:
            raise Failure(f"{collective}, {size} bytes: no arm in {seconds} s")
        wrong = [a["arm"] for a in found["arms"] if not a["right"]]
        if wrong:
            raise Failure(f"{self.name}, {collective}, {size} bytes: wrong data of {wrong}")
        return found

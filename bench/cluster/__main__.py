# SPDX-License-Identifier: BSL-1.0
"""Emulated clusters on one machine: hosts with their own addresses, linked by a shaped network.

    python3 bench/cluster up --hosts 8 --rate 200mbit
    python3 bench/cluster run --hosts 8 -- build/release/lib/cli/railpass bench --budget 60s
    python3 bench/cluster exec 0 tc -s qdisc
    python3 bench/cluster down

`run` on a cluster that is not up brings it up for this one run and takes it down afterwards.

A host is a network namespace with an interface per rate (eth0, eth1, ...), in a network each
(10.77.0.0/24, 10.78.0.0/24, ...); bridges in a namespace of their own are the switches. MPI uses eth0.
With --shared all interfaces of a host are behind one link of that rate.
Token buckets shape both directions, the host's and the switch's port, so that messages of several
senders queue where they would at a real switch. Each host has its own name, steady clock, System V IPC, /dev/shm
and temporary directory: MPI libraries see the ranks of different hosts as remote. Only MPI's ways
of starting processes by ssh are used, with an agent that enters the host's namespaces instead.

Needs root. Where that or something in the kernel is missing, it says SKIPPED and why, and ends with
status 77. MPICH 4.0 with UCX 1.13 (Debian 12) now and then hangs in MPI_Finalize on three hosts and
more, its ranks waiting for one another: that is what --timeout is for. Messages up to the token bucket's burst (18 KB at 200mbit) are not slowed down.
"""

import argparse
import contextlib
import fcntl
import functools
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

SKIPPED = 77
STATE = Path("/run/railpass-cluster")
NETNS_CONFIG = Path("/etc/netns")
HERE = Path(__file__).resolve().parent
ALLOWED_CONTROLS = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
AVAILABLE_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

GSO_BYTES = 16384  # the largest packet train the kernel hands to an interface at once
BURST_S = 0.25e-3  # token bucket depth as time at full rate, but never less than one train
UPLINK_QUEUE_BYTES = 4 << 20
DOWNLINK_QUEUE_BYTES = 2 << 20
COMMAND_TIMEOUT_S = 30


class Skipped(Exception):
    """This machine cannot emulate a cluster."""


class Failed(Exception):
    """Something went wrong that should not have; the text says what."""


def call(*command, text=""):
    """Runs a short command and returns what it printed."""
    done = subprocess.run(command, input=text, capture_output=True, text=True,
                          timeout=COMMAND_TIMEOUT_S)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def bytes_per_second(rate):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(kbit|mbit|gbit)", rate)
    if not match:
        raise argparse.ArgumentTypeError(f"'{rate}' is not a rate such as 200mbit or 1gbit")
    return float(match[1]) * {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}[match[2]] / 8


class Cluster:
    def __init__(self, name):
        self.name = name
        self.directory = STATE / name
        self.switch = f"{name}-switch"

    def host(self, index):
        return f"{self.name}{index}"

    @property
    def settings(self):
        try:
            return json.loads((self.directory / "settings.json").read_text())
        except FileNotFoundError:
            return None

    def namespaces(self):
        """Those of this cluster that exist, whether or not it came up completely."""
        own = re.compile(re.escape(self.name) + r"(\d+|-switch)$")
        names = [line.split()[0] for line in call("ip", "netns", "list").splitlines() if line]
        return [name for name in names if own.match(name)]

    def up(self, hosts, rate, mtu, shared=None):
        check_machine()
        with alone():
            if self.namespaces() or self.directory.exists():
                raise Failed(f"cluster '{self.name}' is up, at least in part; take it down first")
            try:
                self._create(hosts, rate, mtu, shared)
            except BaseException:
                self._remove()
                raise

    def _create(self, hosts, rate, mtu, shared):
        self.directory.mkdir()
        names = [self.host(i) for i in range(hosts)]
        call("ip", "-batch", "-", text="".join(f"netns add {n}\n" for n in [self.switch] + names))
        rates = rate.split(",")
        # The switches' ports: one per interface, or one per host.
        ports = [shared] if shared else rates
        for rail in range(len(ports)):
            call("ip", "-n", self.switch, "-batch", "-",
                 text=f"link add bridge{rail} mtu {mtu} type bridge stp_state 0 forward_delay 0\n"
                      f"link set bridge{rail} up\n")
        with congestion_control() as control:
            for i, name in enumerate(names):
                call("ip", "-n", name, "link", "set", "lo", "up")
                for rail, its_rate in enumerate(ports):
                    device, port = "uplink" if shared else f"eth{rail}", f"port{i}-{rail}"
                    call("ip", "link", "add", device, "netns", name, "mtu", str(mtu),
                         "gso_max_size", str(GSO_BYTES), "type", "veth", "peer", "name", port,
                         "netns", self.switch, "mtu", str(mtu), "gso_max_size", str(GSO_BYTES))
                    call("ip", "-n", self.switch, "link", "set", port, "master", f"bridge{rail}",
                         "up")
                    call("ip", "-n", name, "link", "set", device, "up")
                    shape(name, device, its_rate, UPLINK_QUEUE_BYTES)
                    shape(self.switch, port, its_rate, DOWNLINK_QUEUE_BYTES)
                for rail, its_rate in enumerate(rates):
                    device = f"eth{rail}"
                    if shared:
                        call("ip", "-n", name, "link", "add", "link", "uplink", "name", device,
                             "gso_max_size", str(GSO_BYTES), "type", "macvlan", "mode", "bridge")
                        shape(name, device, its_rate, UPLINK_QUEUE_BYTES)
                    call("ip", "-n", name, "-batch", "-",
                         text=f"addr add {address(i, rail)}/24 dev {device}\n"
                              f"link set {device} up\n")
                configure_tcp(name, control)
        table = "127.0.0.1 localhost\n" + "".join(f"{address(i)} {n}\n" for i, n in enumerate(names))
        for name in names:
            (NETNS_CONFIG / name).mkdir(parents=True)
            (NETNS_CONFIG / name / "hosts").write_text(table)
            (self.directory / name).mkdir()
        agent = self.directory / "agent"
        agent.write_text(f"#!/bin/sh\nexec '{sys.executable}' -I '{HERE}' --name {self.name} "
                         "agent -- \"$@\"\n")
        agent.chmod(0o755)
        call("cc", "-O2", "-shared", "-fPIC", "-o", str(self.directory / "yield_preload.so"),
             str(HERE / "yield_preload.c"), "-ldl")
        (self.directory / "settings.json").write_text(
            json.dumps({"hosts": hosts, "rate": rate, "mtu": mtu, "shared": shared,
                        "congestion_control": control}))

    def kill_processes(self):
        for name in self.namespaces():
            for pid in call("ip", "netns", "pids", name).split():
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def down(self):
        """Removes everything there is of this cluster; nothing to remove is no error."""
        if self.namespaces() or self.directory.exists():
            with alone():
                self._remove()

    def _remove(self):
        self.kill_processes()
        for name in self.namespaces():
            call("ip", "netns", "del", name)
            shutil.rmtree(NETNS_CONFIG / name, ignore_errors=True)
        if NETNS_CONFIG.is_dir() and not any(NETNS_CONFIG.iterdir()):
            NETNS_CONFIG.rmdir()
        shutil.rmtree(self.directory, ignore_errors=True)

    def enter(self, host, command):
        """The command line that runs `command` on a host, named as its namespace is."""
        script = (f"hostname {host} && mount -t tmpfs none /dev/shm && "
                  f"TMPDIR='{self.directory / host}' exec \"$@\"")
        return ["ip", "netns", "exec", host, "unshare", "--uts", "--ipc", *own_clock(host), "sh", "-c",
                script, "sh", *command]

    def run(self, arguments):
        """Runs an MPI program and returns its exit status."""
        settings = self.settings
        if settings is None:
            raise Failed(f"cluster '{self.name}' is not up")
        if arguments.hosts > settings["hosts"]:
            raise Failed(f"cluster '{self.name}' has {settings['hosts']} hosts, not "
                         f"{arguments.hosts}")
        names = [self.host(i) for i in range(arguments.hosts)]
        # Each run is the first one, unless it is asked to remember.
        variables = {"RAILPASS_KNOWLEDGE": "off"} | dict(arguments.env)
        if arguments.yielding:
            variables["LD_PRELOAD"] = ":".join(filter(None, [
                str(self.directory / "yield_preload.so"), variables.get("LD_PRELOAD")]))
        starter = {"openmpi": self._openmpi, "mpich": self._mpich,
                   "intel": self._intel}[arguments.mpi]
        if arguments.mca and arguments.mpi != "openmpi":
            raise Failed("--mca is for Open MPI")
        command = starter(names, arguments.ranks_per_host, variables,
                          dict(arguments.mca)) + arguments.command
        process = subprocess.Popen(self.enter(names[0], command), stdin=subprocess.DEVNULL)
        try:
            if not ended(process, arguments.timeout):
                raise Failed(f"stopped: it did not end within {arguments.timeout:g} s")
            return process.wait()
        finally:
            if process.poll() is None:
                process.terminate()  # lets mpirun end its ranks
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    pass
                self.kill_processes()
                process.wait()

    def _openmpi(self, names, ranks_per_host, variables, mca):
        exported = [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]
        slots = ",".join(f"{name}:{ranks_per_host}" for name in names)
        mca = {"plm": "rsh", "plm_rsh_agent": str(self.directory / "agent"),
               "oob_tcp_if_include": "eth0", "btl_tcp_if_include": "eth0", "pml": "ob1",
               "btl": "tcp,self,vader", "mpi_yield_when_idle": "1", **mca}
        return [program("mpirun.openmpi", "mpirun"), "--allow-run-as-root", "--oversubscribe",
                "--host", slots, "--map-by", "slot", "--bind-to", "none",
                *(w for name, value in mca.items() for w in ("--mca", name, value)), *exported]

    def _mpich(self, names, ranks_per_host, variables, _):
        # whichever of its two network libraries this MPICH was built with: TCP over eth0
        variables = {"UCX_TLS": "tcp,sm,self", "UCX_NET_DEVICES": "eth0", "FI_PROVIDER": "tcp",
                     "FI_TCP_IFACE": "eth0", **variables}
        exported = [w for name, value in variables.items() for w in ("-genv", name, value)]
        return [program("mpiexec.mpich", "mpiexec.hydra", "mpiexec"), "-launcher", "ssh",
                "-launcher-exec", str(self.directory / "agent"), "-iface", "eth0",
                "-hosts", ",".join(names), "-ppn", str(ranks_per_host),
                "-n", str(ranks_per_host * len(names)), *exported]

    def _intel(self, names, ranks_per_host, variables, _):
        root = os.environ.get("I_MPI_ROOT")
        if not root:
            raise Failed("--mpi intel: I_MPI_ROOT does not say where Intel MPI is")
        variables = {"I_MPI_FABRICS": "shm:ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "eth0",
                     **variables}
        exported = [w for name, value in variables.items() for w in ("-genv", name, value)]
        return [f"{root}/bin/mpiexec.hydra", "-launcher", "ssh",
                "-launcher-exec", str(self.directory / "agent"), "-iface", "eth0",
                "-hosts", ",".join(names), "-ppn", str(ranks_per_host),
                "-n", str(ranks_per_host * len(names)), *exported]


def ended(process, timeout):
    """As Popen.wait, which for ever keeps its lock if a signal's exception comes at the wrong time."""
    with os.fdopen(os.pidfd_open(process.pid)) as pid:
        return bool(select.select([pid], [], [], timeout)[0])


@contextlib.contextmanager
def alone():
    """While no other cluster comes or goes: they share files of the machine."""
    STATE.mkdir(exist_ok=True)
    with open(STATE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def address(index, rail=0):
    return f"10.{77 + rail}.0.{index + 1}"


def program(*candidates):
    for name in candidates:
        found = shutil.which(name)
        if found:
            return found
    raise Failed(f"found none of {', '.join(candidates)}")


@functools.cache
def has_own_clocks():
    return subprocess.run(["unshare", "--time", "--monotonic", "1", "true"], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0


def own_clock(host):
    """Options of unshare. Emulated hosts share no steady clock, as hosts of a real cluster, unless
    the kernel has no time namespaces."""
    if not has_own_clocks():
        return []
    return ["--time", "--monotonic", str(1000 * int(re.search(r"\d+$", host)[0]))]


def check_machine():
    if os.geteuid() != 0:
        raise Skipped("emulated hosts need root")
    for tool in ("ip", "tc", "unshare", "cc"):
        if not shutil.which(tool):
            raise Skipped(f"the command {tool} is missing")
    probe = ("ip link add name eth0 type veth peer name port0 && "
             "ip link add name bridge type bridge && "
             "tc qdisc add dev eth0 root tbf rate 1mbit burst 20kb limit 20kb && "
             "mount -t tmpfs none /dev/shm")
    try:
        call("unshare", "--net", "--mount", "--uts", "--ipc", "sh", "-c", probe)
    except Failed as reason:
        raise Skipped(f"no namespaces, bridge or traffic shaping here ({reason})") from None


@contextmanager
def congestion_control():
    """Names the congestion control for the hosts; while inside, hosts may choose it.

    Not the machine's own: some (bbr) reach only three quarters of a rate shaped by a token bucket.
    A network namespace may choose only what the machine allows, so cubic is allowed for a moment.
    """
    allowed = ALLOWED_CONTROLS.read_text().split()
    if "cubic" not in AVAILABLE_CONTROLS.read_text().split():
        yield "reno"  # always there
    elif "cubic" in allowed:
        yield "cubic"
    else:
        ALLOWED_CONTROLS.write_text(" ".join(allowed + ["cubic"]))
        try:
            yield "cubic"
        finally:
            ALLOWED_CONTROLS.write_text(" ".join(allowed))


def configure_tcp(host, control):
    values = {"net/ipv4/tcp_congestion_control": control,
              "net/ipv4/tcp_no_metrics_save": 1,  # no connection inherits what another one saw
              "net/ipv4/tcp_slow_start_after_idle": 0,
              # interfaces that share a link answer for their own address only
              "net/ipv4/conf/all/arp_ignore": 1, "net/ipv4/conf/all/arp_announce": 2,
              "net/ipv6/conf/all/disable_ipv6": 1}
    script = "".join(f"[ ! -e /proc/sys/{key} ] || echo {value} >/proc/sys/{key} || exit 1\n"
                     for key, value in values.items())
    call("ip", "netns", "exec", host, "sh", "-c", script)


def shape(namespace, device, rate, queue_bytes):
    burst = max(int(bytes_per_second(rate) * BURST_S), GSO_BYTES + 2048)
    call("tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate,
         "burst", str(burst), "limit", str(queue_bytes))


def after_dashes(words):
    return words[1:] if words[:1] == ["--"] else words


def agent(cluster, words):
    """What mpirun calls in place of ssh: [options] HOST COMMAND..."""
    words = after_dashes(words)
    with_value = {"-l", "-p", "-o", "-F", "-i"}
    while words and words[0].startswith("-"):
        words = words[2 if words[0] in with_value else 1:]
    if len(words) < 2:
        raise Failed("agent: expected HOST COMMAND")
    command = cluster.enter(words[0], ["sh", "-c", " ".join(words[1:])])
    os.execvp(command[0], command)


def name_argument(text):
    # one rule for namespaces, host names and directories
    if not re.fullmatch(r"[a-z]([a-z0-9-]{0,20}[a-z])?", text):
        raise argparse.ArgumentTypeError("expected small letters, digits and -, a letter last")
    return text


def variable_argument(text):
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE")
    return name, value


def number_argument(least, most):
    def parse(text):
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {least} to {most}")
        return int(text)
    return parse


def one_rate_argument(text):
    bytes_per_second(text)
    return text


def rate_argument(text):
    for rate in text.split(","):
        bytes_per_second(rate)
    return text


def parse(words):
    parser = argparse.ArgumentParser(prog="bench/cluster", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", type=name_argument, default="railpass",
                        help="which cluster, where there are several (default railpass)")
    verbs = parser.add_subparsers(dest="verb", required=True)

    def network(verb):
        verb.add_argument("--hosts", type=number_argument(1, 200), required=True)
        verb.add_argument("--rate", type=rate_argument, default="200mbit",
                          help="of every link, each way (default 200mbit); 400mbit,100mbit gives every "
                               "host a second network")
        verb.add_argument("--mtu", type=number_argument(576, 65535), default=1500)
        verb.add_argument("--shared", type=one_rate_argument, metavar="RATE",
                          help="of one link behind all interfaces of a host")

    network(verbs.add_parser("up", help="create the hosts"))
    verbs.add_parser("down", help="remove the hosts and everything that runs on them")
    execute = verbs.add_parser("exec", help="run a command on one host")
    execute.add_argument("host", type=number_argument(0, 199))
    execute.add_argument("command", nargs=argparse.REMAINDER)
    run = verbs.add_parser("run", help="run an MPI program on the hosts")
    network(run)
    run.add_argument("--mpi", choices=["openmpi", "mpich", "intel"], default="openmpi",
                     help="intel: the one in the directory that the variable I_MPI_ROOT names")
    run.add_argument("--ranks-per-host", type=number_argument(1, 1000), default=1)
    run.add_argument("--env", type=variable_argument, action="append", default=[],
                     metavar="NAME=VALUE", help="set for all ranks; may be repeated")
    run.add_argument("--mca", type=variable_argument, action="append", default=[],
                     metavar="NAME=VALUE", help="parameter of Open MPI, in place of what is said here")
    run.add_argument("--timeout", type=float, default=600, metavar="SECONDS")
    run.add_argument("--no-yield", dest="yielding", action="store_false",
                     help="do not make idle ranks give their core to the others")
    run.add_argument("command", nargs=argparse.REMAINDER)
    ssh = verbs.add_parser("agent", help="what mpirun calls in place of ssh")
    ssh.add_argument("words", nargs=argparse.REMAINDER)

    arguments = parser.parse_args(words)
    if arguments.verb in ("exec", "run"):
        arguments.command = after_dashes(arguments.command)
        if not arguments.command:
            parser.error(f"{arguments.verb}: expected a command after --")
    return arguments


def main(words):
    arguments = parse(words)
    cluster = Cluster(arguments.name)
    if arguments.verb == "up":
        cluster.up(arguments.hosts, arguments.rate, arguments.mtu, arguments.shared)
    elif arguments.verb == "down":
        if os.geteuid() != 0:
            raise Skipped("emulated hosts need root")
        cluster.down()
    elif arguments.verb == "exec":
        command = cluster.enter(cluster.host(arguments.host), arguments.command)
        return subprocess.run(command).returncode
    elif arguments.verb == "agent":
        agent(cluster, arguments.words)
    elif cluster.settings is not None:
        return cluster.run(arguments)
    else:
        cluster.up(arguments.hosts, arguments.rate, arguments.mtu, arguments.shared)
        try:
            return cluster.run(arguments)
        finally:
            cluster.down()
    return 0


def interrupted(number, _):
    sys.exit(128 + number)  # as an exception, so that what was begun is cleaned up


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    try:
        sys.exit(main(sys.argv[1:]))
    except Skipped as reason:
        print(f"SKIPPED: {reason}", file=sys.stderr)
        sys.exit(SKIPPED)
    except (Failed, subprocess.TimeoutExpired) as failure:
        print(f"bench/cluster: {failure}", file=sys.stderr)
        sys.exit(1)

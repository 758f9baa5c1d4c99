# SPDX-License-Identifier: BSL-1.0
"""Programs that know nothing of railpass, with and without the preload library: the same output, the
same errors, and calls that were really tuned.

    preload.py PRELOAD_LIBRARY MPI_C_COMPILER MPIEXEC openmpi|mpich [Preloaded.test_...]

With TEST_TRAPS=on all programs run with floating-point traps, as many as the MPI library survives.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PRELOAD, MPICC, MPIEXEC, FAMILY, *CASES = sys.argv[1:]
HERE = Path(__file__).resolve().parent
RANKS = 2  # more than cores would mean minutes with an MPI that does not yield
COLLECTIVES = {
    "broadcast", "all_reduce", "reduce", "reduce_scatter", "reduce_scatter_block", "gather",
    "gatherv", "scatter", "scatterv", "all_gather", "all_gatherv", "all_to_all", "all_to_allv",
    "all_to_allw", "scan", "exscan", "barrier"}
NEIGHBORS = {
    "neighbor_all_to_all", "neighbor_all_to_allv", "neighbor_all_to_allw", "neighbor_all_gather",
    "neighbor_all_gatherv"}
SYSTEM_PYTHON = "/usr/bin/python3"  # Debian's packages are for this one
TRAPS = os.environ.get("TEST_TRAPS") == "on"


def compile_with(compiler, source, program, *flags):
    done = subprocess.run([compiler, *flags, HERE / source, "-lm", "-o", program], capture_output=True,
                          text=True, timeout=120, check=False)
    return done.returncode == 0, f"{compiler} {source}\n{done.stdout}{done.stderr}"


def fortran_compiler():
    """The sibling of the C compiler: mpicc.mpich, mpifort.mpich."""
    folder, name = os.path.split(MPICC)
    for fortran in ("mpifort", "mpif90"):
        found = shutil.which(os.path.join(folder, name.replace("mpicc", fortran)))
        if found and "mpicc" in name:
            return found
    return None


class Preloaded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.traps = ()

    def setUp(self):
        if not TRAPS or self.traps:
            return
        for which in ("-DALL",), ():
            traps = self.library("traps.c", *which)
            control = self.run_ranks(self.program("all_collectives.c"), preload=(traps,))
            if control.returncode == 0:
                type(self).traps = (traps,)
                return
        self.skipTest(f"without railpass, too, {FAMILY} ends with floating-point traps")

    def path(self, name):
        return os.path.join(self.temporary.name, name)

    def library(self, source, *flags):
        name = self.path(Path(source).stem + ".so")
        good, said = compile_with(MPICC, source, name, "-shared", "-fPIC", *flags)
        self.assertTrue(good, said)
        return name

    def program(self, source, *flags):
        name = self.path(Path(source).stem + "".join(flags))
        if not os.path.exists(name):
            good, said = compile_with(MPICC, source, name, "-std=c11", *flags)
            self.assertTrue(good, said)
        return name

    def run_ranks(self, *command, preload=(), mpiexec=MPIEXEC, ranks=RANKS, **settings):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RAILPASS")}
        environment["RAILPASS_KNOWLEDGE"] = "off"  # each run is the first one
        environment["RAILPASS_CONF"] = environment["RAILPASS_SITE"] = ""  # the site does not decide what is tested
        # MPI_Finalize waits 50 ms for what ranks still have to say. On a busy machine that may be
        # too short, and UCX warns on standard output of the message that nobody received.
        environment["UCX_LOG_LEVEL"] = "error"
        # All ranks must read the same; so the launcher gets it, too, and must not mind.
        environment.update({k: str(v) for k, v in settings.items()})
        preload = (*self.traps, *preload)
        if preload:
            environment["LD_PRELOAD"] = ":".join(
                filter(None, (*preload, os.environ.get("LD_PRELOAD"))))
        launch = [mpiexec, "-n", str(ranks)] if ranks else [mpiexec]
        return subprocess.run([*launch, *command], env=environment, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=300,
                              check=False)

    def start(self, *command, **how):
        done = self.run_ranks(*command, **how)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}\n{done.stderr}")
        return done

    def tuned(self, *command, preload=(PRELOAD,), **settings):
        """Runs it with all arms in turn; returns its output and the calls by collective."""
        dump = self.path("dump.json")
        if os.path.exists(dump):
            os.remove(dump)
        done = self.start(*command, preload=preload, RAILPASS_STATS=dump,
                          RAILPASS_POLICY="round_robin", RAILPASS_LOG="stderr", **settings)
        self.assertNotIn("railpass: ", done.stderr)
        with open(dump, encoding="utf-8") as file:
            contexts = json.load(file)["contexts"]
        calls = {}
        for context in contexts:
            calls[context["collective"]] = calls.get(context["collective"], 0) + context["calls"]
        return done.stdout, calls

    def test_all_collectives(self):
        program = self.program("all_collectives.c")
        plain = self.start(program).stdout
        self.assertEqual(len(plain.splitlines()), 19)
        output, calls = self.tuned(program)
        self.assertEqual(output, plain)
        self.assertEqual(set(calls), COLLECTIVES)

    def test_neighbors(self):
        program = self.program("neighbors.c")
        for ranks in (2, 3):
            plain = self.start(program, ranks=ranks).stdout
            self.assertEqual(len(plain.splitlines()), 10)
            for verify in ("off", "on"):
                with self.subTest(ranks=ranks, verify=verify):
                    output, calls = self.tuned(program, ranks=ranks, RAILPASS_VERIFY=verify)
                    self.assertEqual(output, plain)
                    self.assertLessEqual(NEIGHBORS, set(calls))

    def large(self, source, function):
        try:
            return self.program(source, "-DLARGE")
        except AssertionError as said:
            self.assertIn(function, str(said))
            self.skipTest("this MPI has no forms with large counts")

    def test_large_counts_of_neighbors(self):
        program = self.large("neighbors.c", "MPI_Neighbor_alltoall_c")
        plain = self.start(program).stdout
        self.assertEqual(plain, self.start(self.program("neighbors.c")).stdout)
        output, calls = self.tuned(program)
        self.assertEqual(output, plain)
        self.assertLessEqual(NEIGHBORS, set(calls))

    def test_large_counts(self):
        program = self.large("all_collectives.c", "MPI_Bcast_c")
        plain = self.start(program).stdout
        self.assertEqual(plain, self.start(self.program("all_collectives.c")).stdout)
        output, calls = self.tuned(program)
        self.assertEqual(output, plain)
        self.assertEqual(set(calls), COLLECTIVES)

    def test_switched_off(self):
        program = self.program("all_collectives.c")
        dump = self.path("off.json")
        output = self.start(program, preload=(PRELOAD,), RAILPASS="off", RAILPASS_STATS=dump).stdout
        self.assertEqual(output, self.start(program).stdout)
        self.assertFalse(os.path.exists(dump))

    def test_wrong_arguments(self):
        program = self.program("wrong_arguments.c")
        plain = self.start(program).stdout
        self.assertGreater(len(plain.splitlines()), 40)
        output, _ = self.tuned(program)
        self.assertEqual(output, plain)

    def test_profilers_before_and_behind(self):
        profiler = self.library("profiler.c")
        program = self.program("all_collectives.c")
        plain = self.start(program, preload=(profiler,)).stdout
        self.assertIn("profiler: 30 broadcasts, 0 messages", plain)
        _, alone = self.tuned(program)
        for order in ((profiler, PRELOAD), (PRELOAD, profiler)):
            with self.subTest(order=order):
                output, calls = self.tuned(program, preload=order)
                self.assertEqual(output, plain)
                self.assertEqual(calls, alone)  # tuned once each

    def test_mpi_io(self):
        program = self.program("files.c")
        self.assertIn("0 wrong values", self.start(program, self.path("plain")).stdout)
        # Open MPI's own MPI-IO calls no collectives of MPI; ROMIO, its other one and MPICH's, does.
        output, calls = self.tuned(program, self.path("tuned"), OMPI_MCA_io="^ompio")
        self.assertIn("0 wrong values", output)
        self.assertLessEqual({"all_gather", "all_to_all"}, set(calls))
        with open(self.path("plain"), "rb") as a, open(self.path("tuned"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_thread_levels(self):
        program = self.program("threads.c", "-pthread")
        for level in range(4):
            with self.subTest(level=level):
                plain = self.start(program, str(level)).stdout
                self.assertIn("0 wrong", plain)
                # Where several threads may call nothing is made inside a collective.
                output, calls = self.tuned(program, str(level), RAILPASS_ALL_RANKS="on")
                self.assertEqual(output, plain)
                self.assertEqual(set(calls), {"broadcast", "all_reduce", "barrier"})

    def test_threads_of_which_nobody_knows(self):
        # Which ranks run railpass is not known, and inside a collective nothing may be made.
        program = self.program("threads.c", "-pthread")
        if "not given" in self.start(program, "3").stdout:
            self.skipTest("this MPI has no MPI_THREAD_MULTIPLE")
        done = self.start(program, "3", preload=(PRELOAD,), RAILPASS_POLICY="round_robin",
                          RAILPASS_LOG="stderr")
        self.assertIn("0 wrong", done.stdout)
        self.assertIn("start_tuning(MPI_COMM_WORLD)", done.stderr)

    def test_one_rank_that_is_told_not_to_tune(self):
        # Also where a communicator is made for all ranks in MPI_Init.
        program = self.program("lifetimes.c")
        self.assertEqual(
            self.start("sh", "-c", 'export RAILPASS_ENABLE=$(( ${PMIX_RANK:-${PMI_RANK:-0}} > 0 )); '
                       f'exec {program} plain', preload=(PRELOAD,), RAILPASS_ALL_RANKS="on",
                       RAILPASS_POLICY="round_robin").stdout, self.start(program, "plain").stdout)

    def test_tuned_from_the_first_call_on(self):
        program = self.program("all_collectives.c")
        _, later = self.tuned(program)
        always = {"RAILPASS_ALL_RANKS": "on", "RAILPASS_FIRST_CALL": "on"}
        plain = self.start(program).stdout
        output, calls = self.tuned(program, **always)
        self.assertEqual(output, plain)
        self.assertGreater(sum(calls.values()), sum(later.values()))
        # Not all ranks say so: none does it, and nobody waits.
        differs = ["sh", "-c", f'[ "${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}" = 1 ] && '
                   f'export RAILPASS_FIRST_CALL=off; exec {program}']
        self.assertEqual(self.start(*differs, preload=(PRELOAD,), **always).stdout, plain)

    def test_a_site_that_forbids_native(self):
        """From the first call on no rank runs it, though one rank's host lacks the site's file."""
        site, dump = self.path("advisories.json"), self.path("forbidden.json")
        with open(site, "w", encoding="utf-8") as file:
            json.dump({"format": "railpass advisories", "version": 1, "advisories": [
                {"library": {"openmpi": "Open MPI", "mpich": "MPICH"}[FAMILY], "collective": "broadcast",
                 "effect": "is wrong", "avoid": "native", "link": "https://example.org/1"}]}, file)
        program = self.program("long_calls.c")
        rank_1_has_it = ["sh", "-c", f'[ "${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}" = 1 ] && '
                         f'export RAILPASS_ADVISORIES={site}; exec {program} broadcast 5']
        done = self.start(*rank_1_has_it, preload=(PRELOAD,), RAILPASS_ALL_RANKS="on", RAILPASS_STATS=dump)
        self.assertEqual((done.stdout, done.stderr), ("0 wrong\n", ""))
        with open(dump, encoding="utf-8") as file:
            arms = self.arms_in(json.load(file), "broadcast")
        self.assertEqual(sum(arms.values()), 5)
        self.assertNotIn("native", arms)

    @staticmethod
    def arms_in(dump, collective):
        """The calls of its arms since their communicators are tuned."""
        calls = {}
        for context in dump["contexts"]:
            for arm in context["arms"] if context["collective"] == collective else ():
                calls[arm["arm"]] = calls.get(arm["arm"], 0) + arm["calls"]
        return calls

    def calls_of(self, collective, what, calls, ranks=RANKS, **settings):
        dump = self.path("long.json")
        done = self.start(self.program("long_calls.c"), what, str(calls), preload=(PRELOAD,),
                          ranks=ranks, RAILPASS_STATS=dump, RAILPASS_LOG="stderr",
                          **{"RAILPASS_ALL_RANKS": "on", **settings})
        self.assertEqual((done.stdout, done.stderr), ("0 wrong\n", ""))
        with open(dump, encoding="utf-8") as file:
            return sum(self.arms_in(json.load(file), collective).values())

    def test_long_calls_are_tuned_from_the_first_one_on(self):
        for ranks in (2, 3, 4):
            for collective, what in (("broadcast", "broadcast"), ("broadcast", "types"),
                                     ("all_to_all", "all_to_all"), ("broadcast", "threads")):
                with self.subTest(ranks=ranks, what=what):
                    self.assertEqual(self.calls_of(collective, what, 5, ranks), 5)
        self.assertEqual(self.calls_of("all_reduce", "part", 5, ranks=3), 5)
        self.assertEqual(self.calls_of("broadcast", "short_first", 7), 4)
        # Sizes that not all ranks know decide nothing, nor do any where a rank may not run railpass.
        self.assertEqual(self.calls_of("all_gatherv", "all_gatherv", 7), 0)
        self.assertEqual(self.calls_of("broadcast", "broadcast", 7, RAILPASS_ALL_RANKS="off"), 0)
        self.assertEqual(self.calls_of("broadcast", "broadcast", 7, ranks=1), 0)

    def test_the_times_of_the_last_calls_are_not_lost(self):
        for ranks in (2, 3, 4):
            for calls in (3, 6):
                with self.subTest(ranks=ranks, calls=calls):
                    # On a busy machine a rank may come to MPI_Finalize after the others' patience.
                    for _ in range(10):
                        self.calls_of("broadcast", "broadcast", calls, ranks)
                        with open(self.path("long.json"), encoding="utf-8") as file:
                            arms = [arm for context in json.load(file)["contexts"]
                                    if context["collective"] == "broadcast" for arm in context["arms"]]
                        known = sum(arm["samples"] for arm in arms)
                        if known == calls:
                            break
                    self.assertEqual(known, calls)

    def test_a_rank_that_is_switched_off_is_not_waited_for(self):
        program = self.program("long_calls.c")
        for setting in ("ENABLE", "SHARED_MEMORY"):  # on one rank; the other one differs in both
            done = self.start(
                "sh", "-c", f'export RAILPASS_{setting}=$(( ${{PMIX_RANK:-${{PMI_RANK:-0}}}} > 0 )); '
                f'exec {program} broadcast 9', preload=(PRELOAD,), RAILPASS_ALL_RANKS="on")
            self.assertEqual(done.stdout, "0 wrong\n")

    def test_a_first_call_that_is_long_on_some_ranks_only(self):
        log = self.path("unlike log")
        done = self.run_ranks(self.program("long_calls.c"), "unlike", "1", log, preload=(PRELOAD,),
                              RAILPASS_ALL_RANKS="on", RAILPASS_HANG_REPORT=0.1, RAILPASS_LOG=log)
        self.assertNotEqual(done.returncode, 0)
        said = (r"rank 1 of \d of 'MPI_COMM_WORLD' waits for the others to agree whether a "
                r"communicator is tuned, before its \w+ of \d+ bytes.*, for more than 0.1 s")
        with open(log, encoding="utf-8") as file:
            self.assertRegex(file.read(), said)
        self.assertRegex(done.stderr, "railpass: " + said)

    def test_a_rank_without_railpass_where_all_are_said_to_have_it(self):
        log = self.path("off log")
        done = self.run_ranks(
            "sh", "-c", '[ "${PMIX_RANK:-${PMI_RANK:-0}}" = 0 ] && export RAILPASS=off; exec "$@"', "sh",
            self.program("long_calls.c"), "off", "1", log, preload=(PRELOAD,),
            RAILPASS_ALL_RANKS="on", RAILPASS_HANG_REPORT=0.1, RAILPASS_LOG=log)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("railpass: rank 1 waits inside MPI_Init for ranks without railpass", done.stderr)

    def plan(self, name, ranks, variant, cpu=""):
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"format": "railpass plan", "version": 1,
                       "machine_id": {"num_hosts": 1, "cores_per_host": 0, "cpu_model": cpu,
                                      "mpi_library": ""},
                       "written_at": "2026-01-31T12:00:00Z",
                       "calls": [{"collective": "all_reduce", "operation": "builtin",
                                  "num_ranks": ranks, "ranks_per_node": ranks, "from_bytes": 0,
                                  "variant": variant}]}, file)
        return path

    def test_a_plan_from_the_first_call_on(self):
        program, all_ranks = self.program("planned.c"), {"RAILPASS_ALL_RANKS": "on"}
        calls = 40

        def run(ranks=3, **settings):
            """The bits of both sums, and how many calls were native."""
            done = self.start(program, str(calls), preload=(PRELOAD,), ranks=ranks, **settings)
            world, part, *native = done.stdout.split()
            return (world, part), [int(n) for n in native], done.stderr

        plain, *_ = run(RAILPASS="off")
        for _ in range(3):
            planned = run(RAILPASS_PLAN=self.plan("ring", 3, "ring"), **all_ranks)
            self.assertEqual(planned[1:], ([0, calls], ""))  # the part has other ranks
            self.assertEqual(planned[0][1], plain[1])
            others = run(RAILPASS_PLAN=self.plan("tree", 3, "recursive_doubling"), **all_ranks)
            self.assertEqual(others[1], [0, calls])
        self.assertNotEqual(planned[0][0], others[0][0])  # the order of the sum decides the bits
        self.assertEqual(run(RAILPASS_PLAN=self.plan("part", 2, "ring"), **all_ranks)[1], [calls, 0])
        self.assertRegex(run(RAILPASS_PLAN=self.plan("ring", 3, "ring"), RAILPASS_SUMMARY="on", **all_ranks)[2],
                         r"\Arailpass: the calls that plan \S*ring names took its arms, .*pays\.\n\Z")
        # Without word of all ranks, from the first agreement on.
        self.assertEqual(run(RAILPASS_PLAN=self.plan("ring", 3, "ring"))[1], [7, calls])
        # A pin comes before a plan, also where the plan names no call of a communicator.
        pinned = run(RAILPASS_PLAN=self.plan("part", 2, "ring"), RAILPASS_USE="all_reduce:ring", **all_ranks)
        self.assertLess(pinned[1][0], calls)
        self.assertEqual(pinned[2], "")

    def test_a_plan_that_not_all_ranks_can_follow(self):
        program = self.program("planned.c")
        good, other = self.plan("good", 2, "ring"), self.plan("other", 2, "recursive_doubling")
        alien = self.plan("alien", 2, "ring", cpu="an abacus")
        for paths in ("", good), (good, ""), (good, other), (good, alien), (alien, alien):
            for known in "on", "off":
                done = self.start(
                    "sh", "-c", '[ "${PMIX_RANK:-${PMI_RANK:-0}}" = 0 ] && RAILPASS_PLAN=$1 || '
                    'RAILPASS_PLAN=$2; export RAILPASS_PLAN; shift 2; exec "$@"', "sh", *paths, program, "40",
                    preload=(PRELOAD,), RAILPASS_ALL_RANKS=known, RAILPASS_SUMMARY="on")
                native = [int(n) for n in done.stdout.split()[2:]]
                self.assertEqual(native, [40, 40], paths)
                if paths[0] == good:
                    self.assertRegex(done.stderr, "railpass: no communicator of rank 0 followed plan .*good; all calls")
                if paths[0] == alien:
                    self.assertRegex(done.stderr, "railpass: RAILPASS_PLAN: .*alien: this plan is for "
                                     "another machine: made on a machine with the CPU 'an abacus', .*; "
                                     "every call goes to the MPI library")

    def test_calls_of_which_much_is_known_to_be_at_stake(self):
        slow = self.library("slow_native.c")
        store = self.path("store of stakes")
        for what, calls in (("all_to_all", 8), ("broadcast", 30)):
            how = {"program": "long_calls.c", "preload": (PRELOAD, slow)}
            self.remember(store, what, "60", **how)
            native = []
            for _ in range(10):  # while the machine is busy calls take something else than before
                _, dump = self.remember(store, what, str(calls), **how)
                arms = self.arms_in(dump, what)
                self.assertEqual(sum(arms.values()), calls)
                native.append(arms.get("native", 0))
                if native[-1] <= calls // 8:
                    break
            self.assertLessEqual(native[-1], calls // 8, native)

    def test_waits_inside_the_mpi_library_are_reported(self):
        log = self.path("log")
        done = self.start(self.program("late.c"), log, preload=(PRELOAD,), RAILPASS_ALL_RANKS="on",
                          RAILPASS_FIRST_CALL="on", RAILPASS_HANG_REPORT=0.1, RAILPASS_LOG=log)
        with open(log, encoding="utf-8") as file:
            said = file.read()
        agrees = (r"rank 0 of \d of 'MPI_COMM_WORLD' waits for the others to agree whether a "
                  r"communicator is tuned, before its barrier, for more than 0.1 s")
        self.assertRegex(said, agrees)
        self.assertRegex(done.stderr, "railpass: " + agrees)
        self.assertIn("rank 0 is inside MPI_Finalize for more than 0.1 s", said)

    def test_lifetimes(self):
        program = self.program("lifetimes.c")
        for mode in ("atexit", "self", "free", "free_first", "outstanding", "wrong_operation",
                     "null_types", "empty_parts", "isolated", "aliases", "padded_alias"):
            for ranks in (2, 3):
                with self.subTest(mode=mode, ranks=ranks):
                    plain = self.start(program, mode, ranks=ranks).stdout
                    self.assertIn("0 wrong", plain)
                    for all_ranks in ("on", "off"):
                        done = self.start(program, mode, ranks=ranks, preload=(PRELOAD,),
                                          RAILPASS_POLICY="round_robin",
                                          RAILPASS_ALL_RANKS=all_ranks)
                        self.assertEqual((done.stdout, done.stderr), (plain, ""))

    def test_sessions(self):
        # Without MPI_Init nothing is tuned, and nothing is spoilt.
        program = self.program("sessions.c")
        plain = self.start(program).stdout
        if "no sessions" in plain:
            self.skipTest("this MPI has no sessions")
        self.assertEqual(plain, "0 wrong\n")
        done = self.start(program, preload=(PRELOAD,), RAILPASS_SUMMARY=1)
        self.assertEqual((done.stdout, done.stderr), (plain, ""))

    def test_the_floating_point_environment(self):
        program = self.program("floating_point.c", "-frounding-math")
        self.natively(program, expected="0 wrong\n")
        for policy in ("round_robin", ""):
            # Tuned although the calls may be too short for it to pay.
            done = self.start(program, preload=(PRELOAD,), RAILPASS_SUMMARY=1, RAILPASS_ALL_RANKS="on",
                              RAILPASS_FIRST_CALL="on", **({"RAILPASS_POLICY": policy} if policy else {}))
            self.assertEqual(done.stdout, "0 wrong\n")
            self.assertIn("tuned collectives", done.stderr)

    def natively(self, *command, expected, **how):
        """What the MPI library alone does not survive is not tested."""
        done = self.run_ranks(*command, **how)
        if done.returncode != 0 or done.stdout != expected:
            self.skipTest(f"without railpass, too, {FAMILY} fails: {done.stdout}{done.stderr}")

    def test_an_error_handler_that_jumps(self):
        program = self.program("error_handlers.c")
        self.natively(program, expected="30 caught, 0 wrong\n", ranks=3)
        output, calls = self.tuned(program, ranks=3)
        self.assertEqual(output, "30 caught, 0 wrong\n")
        self.assertGreater(calls["all_reduce"], 100)

    def test_an_error_handler_that_leaves_a_halo_exchange(self):
        libraries, program = Path(PRELOAD).parent, self.path("failed_halo")
        good, said = compile_with(MPICC, "failed_halo.c", program,
                                  f"-I{HERE.parent.parent / 'include'}", f"-L{libraries}",
                                  "-Wl,--no-as-needed", "-lrailpass", f"-Wl,-rpath,{libraries}")
        self.assertTrue(good, said)
        output, calls = self.tuned(program)
        self.assertEqual(output, "caught\n")
        self.assertIn("all_reduce", calls)

    def test_signals_and_few_files(self):
        program, hostile = self.program("all_collectives.c"), self.library("hostile.c")
        plain = self.start(program).stdout
        for how in ("signals", "files"):
            with self.subTest(how=how):
                self.natively(program, expected=plain, preload=(hostile,), HOSTILE=how)
                output, calls = self.tuned(program, preload=(hostile, PRELOAD), HOSTILE=how)
                self.assertEqual(output, plain)
                self.assertEqual(set(calls), COLLECTIVES)

    def test_small_stacks(self):
        if FAMILY == "mpich":  # it may write to whatever lies below the stack, and go on
            self.skipTest("without railpass, too, MPICH 4.0 takes 128 KiB of the stack to reduce 240 KB")
        program = self.program("small_stacks.c", "-pthread")
        self.natively(program, "24", expected="0 wrong\n")
        for use in ("", "all_gather:single_copy,broadcast:single_copy"):
            with self.subTest(use=use):
                output, calls = self.tuned(program, "24", RAILPASS_USE=use)
                self.assertEqual(output, "0 wrong\n")
                self.assertLessEqual({"broadcast", "all_reduce", "all_gather"}, set(calls))

    def test_privileges_that_are_given_up(self):
        program = self.program("privileges.c")
        without = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}  # Open MPI's own complain
        self.natively(program, "40", expected="0 wrong\n", **without)
        for more in ("", "+giver_writes=1"):
            use = ",".join(f"{name}:single_copy{more}" for name in ("all_gather", "gather"))
            with self.subTest(use=use):
                done = self.start(program, "40", preload=(PRELOAD,), **without,
                                  RAILPASS_USE=use + ",all_reduce:single_copy")
                self.assertEqual(done.stdout, "0 wrong\n")
                self.assertEqual(done.stderr.count("the kernel no longer lets"), 1, done.stderr)
        # Once all ranks know, calls do without single copies. Rank 0 may not hear of it before the end.
        done = self.start(program, "200", preload=(PRELOAD,), RAILPASS_POLICY="round_robin",
                          **without)
        self.assertEqual(done.stdout, "0 wrong\n")
        self.assertLessEqual(done.stderr.count("the kernel no longer lets"), 1, done.stderr)

    def test_little_shared_memory(self):
        # What MPI libraries and others take from /dev/shm is not ours to take.
        program = self.program("all_collectives.c")
        plain = self.start(program).stdout
        little = ("unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=64k none /dev/shm && "
                  f"exec {MPIEXEC} -n {RANKS} {program}")
        self.natively(*little, expected=plain, mpiexec="env", ranks=None)
        output, calls = self.tuned(*little, mpiexec="env", ranks=None)
        self.assertEqual(output, plain)
        self.assertEqual(set(calls), COLLECTIVES)

    def test_memory_of_a_gpu(self):
        program = self.program("all_collectives.c")
        plain = self.start(program).stdout
        # No arm of the MPI library's, which would reach for the memory itself.
        pinned = ",".join(
            f"{name}:{arm}" for arm, names in {
                "binomial": ("broadcast", "reduce", "gather", "scatter"),
                "ring": ("all_reduce", "reduce_scatter", "reduce_scatter_block", "all_gather",
                         "all_gatherv"),
                "pairwise": ("all_to_all", "all_to_allv", "all_to_allw"),
                "linear": ("gatherv", "scatterv", "scan", "exscan")}.items() for name in names)
        for maker, library in (("CUDA", "libcuda.so.1"), ("HIP", "libamdhip64.so.6"),
                               ("LEVEL_ZERO", "libze_loader.so.1")):
            driver = self.path(library)
            good, said = compile_with(MPICC, "fake_driver.c", driver, "-shared", "-fPIC",
                                      f"-D{maker}", f"-Wl,-soname,{library}")
            self.assertTrue(good, said)
            for who, ranks_with_driver in (("one", 1), ("all", RANKS)):
                with self.subTest(maker=maker, who=who):
                    done = self.start(program, driver, who, preload=(PRELOAD,), RAILPASS_USE=pinned,
                                      RAILPASS_LOG="stderr")
                    self.assertEqual(done.stdout, plain)
                    self.assertEqual(done.stderr.splitlines(), ["0 touches"] * ranks_with_driver)
            dump = self.path("dump_gpu.json")
            done = self.start(program, driver, "idle", preload=(PRELOAD,), RAILPASS_GPU="native",
                              RAILPASS_STATS=dump, RAILPASS_LOG="stderr")
            self.assertEqual(done.stdout, plain)
            self.assertIn("memory of a GPU", done.stderr)
            with open(dump, encoding="utf-8") as file:
                self.assertEqual(json.load(file)["contexts"], [])

    def test_a_driver_that_is_loaded_later(self):
        # What was known of a call's buffers says nothing of where the next ones are.
        driver = self.path("libcuda.so.1")
        good, said = compile_with(MPICC, "fake_driver.c", driver, "-shared", "-fPIC", "-DCUDA",
                                  "-Wl,-soname,libcuda.so.1")
        self.assertTrue(good, said)
        done = self.start(self.program("late_driver.c"), driver, preload=(PRELOAD,),
                          RAILPASS_USE="broadcast:binomial", RAILPASS_LOG="stderr")
        self.assertEqual((done.stdout, done.stderr), ("0 wrong\n", ""))

    def test_a_driver_that_cannot_be_asked(self):
        # One rank loads it while arms are compared: from the next merge on all stay native.
        source, driver, trace = (self.path(n) for n in ("empty.c", "libze_loader.so.1", "late"))
        Path(source).write_text("", encoding="utf-8")
        good, said = compile_with(MPICC, source, driver, "-shared", "-fPIC",
                                  "-Wl,-soname,libze_loader.so.1")
        self.assertTrue(good, said)
        done = self.start(self.program("device_on_one.c"), driver, preload=(PRELOAD,),
                          RAILPASS_POLICY="round_robin", RAILPASS_TRACE=trace,
                          RAILPASS_LOG="stderr")
        self.assertEqual(done.stdout, "0 wrong\n")
        said = done.stderr.splitlines()
        self.assertEqual(len(said), RANKS, done.stderr)
        for line in said:
            self.assertIn("is not tuned any more: a rank may have memory of a GPU", line)
        arms = []
        for rank in range(RANKS):
            lines = Path(f"{trace}.{rank}").read_text(encoding="utf-8").splitlines()[1:]
            arms.append([line.split(",")[5] for line in lines])
        self.assertGreater(len(set(arms[0])), 1)
        self.assertEqual(set(arms[0][-100:]), {"native"})
        self.assertTrue(all(of_rank == arms[0] for of_rank in arms))

    def test_no_driver_is_searched_for(self):
        # A search asks the file system for every directory of the path, on every rank.
        done = self.start(self.program("all_collectives.c"), preload=(PRELOAD,), LD_DEBUG="libs",
                          RAILPASS_POLICY="round_robin")
        self.assertIn("find library=libc.so", done.stderr)
        for name in ("libcuda", "libamdhip64", "libze_loader"):
            self.assertNotIn("find library=" + name, done.stderr)

    def test_summary(self):
        program = self.program("all_collectives.c")
        plain = self.start(program, preload=(PRELOAD,))
        self.assertEqual(plain.stderr, "")
        done = self.start(program, preload=(PRELOAD,), RAILPASS_SUMMARY=1)
        self.assertEqual(done.stdout, plain.stdout)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for words in ("railpass: ", "17 tuned collectives", "RAILPASS_STATS"):
            self.assertIn(words, done.stderr)
        # How fast this machine is just now decides which.
        self.assertRegex(done.stderr, "95 % interval|slower than|cannot tell whether tuning paid")

    def check_fortran(self, source):
        compiler = fortran_compiler()
        if not compiler:
            self.skipTest("this MPI has no Fortran compiler here")
        program = self.path(source.replace(".", "_"))
        good, said = compile_with(compiler, source, program)
        if not good and ".mod" in said:
            self.skipTest("this MPI's module is not for this Fortran compiler: " +
                          said.splitlines()[-1])
        self.assertTrue(good, said)
        self.assertEqual(self.start(program).stdout, "0 wrong\n")
        output, calls = self.tuned(program)
        self.assertEqual(output, "0 wrong\n")
        self.assertEqual(set(calls), {"broadcast", "all_reduce", "neighbor_all_to_all"})

    def test_wrong_settings_are_said_once_by_name(self):
        program = self.program("all_collectives.c")
        plain = self.start(program).stdout
        for name, value, says in (
                ("RAILPASS_POLICY", "foo", "'foo': expected one of"),
                ("RAILPASS_USE", "bcast:binomal", "did you mean 'binomial'?"),
                ("RAILPASS_USE", "brodcast:binomial", "did you mean 'broadcast'?"),
                ("RAILPASS_USE", "step:t8u1", "nor a function set that rank 0 called"),
                ("RAILPASS_PROFILE", self.path("none.json"), "none.json"),
                ("RAILPASS_COLLECTIVES", "bcast,allreduc", "did you mean 'all_reduce'?"),
                ("RAILPASS_GPU", "maybe", "expected stage or native"),
                ("RAILPASS_STATS", self.path("no/where"), "no/where"),
                ("RAILPASS_MIN_BITES", "1", "there is no setting 'min_bites'")):
            done = self.start(program, preload=(PRELOAD,), **{name: value})
            said = [line for line in done.stderr.splitlines() if line.startswith("railpass: ")]
            self.assertEqual(len(said), 1, done.stderr)
            self.assertIn(name, said[0])
            self.assertIn(says, said[0])
            self.assertEqual(done.stdout, plain)

    def test_a_pinned_arm_that_never_ran_is_named(self):
        program = self.program("all_collectives.c")  # on one host
        done = self.start(program, preload=(PRELOAD,),
                          RAILPASS_USE="broadcast:nodes_postal_tree,all_reduce:ring,reduce:native")
        self.assertIn("railpass: RAILPASS_USE: never run: broadcast:nodes_postal_tree (",
                      done.stderr)
        self.assertEqual(done.stdout, self.start(program).stdout)

    def test_a_trace_on_a_full_disk(self):
        program = self.program("all_collectives.c")
        trace = self.path("trace")
        os.symlink("/dev/full", trace + ".0")
        done = self.start(program, preload=(PRELOAD,), RAILPASS_TRACE=trace, RAILPASS_LOG="stderr")
        self.assertEqual(done.stdout, self.start(program).stdout)
        said = [line for line in done.stderr.splitlines() if "RAILPASS_TRACE" in line]
        self.assertEqual(len(said), 1, done.stderr)
        self.assertIn(f"'{trace}.0' cannot be written", said[0])
        with open(trace + ".1", encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertTrue(lines[0].startswith("time_s,"))
        self.assertGreater(len(lines), 100)

    def test_spawned_programs_have_files_of_their_own(self):
        program = self.program("spawning.c")
        control = self.run_ranks(program)
        if control.returncode != 0:
            self.skipTest(f"without railpass, too, {FAMILY} spawns no ranks: {control.stderr}")
        folder = Path(self.path("spawned"))
        folder.mkdir()
        done = self.start(program, preload=(PRELOAD,), RAILPASS_TRACE=folder / "trace",
                          RAILPASS_STATS=folder / "stats", RAILPASS_POLICY="round_robin")
        self.assertEqual(done.stdout, control.stdout)
        found = sorted(re.sub("[0-9]{2,}", "PID", file.name) for file in folder.iterdir())
        self.assertEqual(found, ["stats", "stats.spawnedPID", "trace.0", "trace.1",
                                 "trace.spawnedPID.0", "trace.spawnedPID.1"])
        for file in folder.iterdir():
            text = file.read_text(encoding="utf-8")
            if file.name.startswith("trace"):
                lines = text.splitlines()
                self.assertEqual({line.count(",") for line in lines}, {lines[0].count(",")})
                self.assertGreater(len(lines), 40)
            else:
                self.assertIn("all_reduce", {c["collective"] for c in json.loads(text)["contexts"]})

    def remember(self, store, *command, program="remembered.c", preload=(PRELOAD,), **settings):
        """Runs a program that is to remember; what it says and its statistics. Where the machine is
        so busy that nobody waits for files, it runs again, as if it had not run."""
        dump = self.path("dump.json")
        before = self.files_of(store)
        for _ in range(20):
            for kept in set(self.files_of(store)) - set(before):
                kept.unlink()
            done = self.start(self.program(program), *command, preload=preload,
                              RAILPASS_KNOWLEDGE=store, RAILPASS_STATS=dump, RAILPASS_LOG="stderr",
                              RAILPASS_ALL_RANKS="on", **settings)
            self.assertEqual(done.stdout, "0 wrong\n")
            if "more than 50 ms" not in done.stderr:
                break
        with open(dump, encoding="utf-8") as file:
            return done.stderr, json.load(file)

    @staticmethod
    def files_of(store):
        return sorted(p for p in Path(store).rglob("*.run") if p.is_file())

    def reasons(self, dump):
        return [c["reason"] for c in dump["contexts"] if c["collective"] == "all_reduce"]

    def test_runs_remember(self):
        store = self.path("store")
        _, first = self.remember(store, "300")
        self.assertNotIn("earlier runs", self.reasons(first)[0])
        after_first = self.files_of(store)
        self.assertGreater(len(after_first), 0)
        _, second = self.remember(store, "300")
        self.assertIn("earlier runs", self.reasons(second)[0])
        after_second = self.files_of(store)
        self.assertGreater(len(after_second), len(after_first))
        # What nobody would miss is not kept, and off is off.
        self.remember(store, "0")
        self.remember("off", "300")
        self.assertEqual(self.files_of(store), after_second)

    def test_knowledge_is_where_state_is(self):
        state = self.path("state")
        self.remember("on", "300", XDG_STATE_HOME=state)
        self.assertGreater(len(self.files_of(Path(state) / "railpass")), 0)

    def test_knowledge_survives_a_slow_disk(self):
        store, slow = self.path("slow store"), self.program("slow_disk.c", "-shared", "-fPIC")
        for runs in (1, 2):
            said, dump = self.remember(store, "300", preload=(PRELOAD, slow))
            self.assertNotIn("not kept", said)
            self.assertEqual(len(self.files_of(store)), runs)
        self.assertIn("earlier runs", self.reasons(dump)[0])

    def test_the_quarantine_counts_where_its_folder_is_slow(self):
        slow = self.program("slow_disk.c", "-shared", "-fPIC")
        settings = {"RAILPASS_POLICY": "round_robin", "RAILPASS_COLLECTIVES": "all_reduce"}

        def arms(store, preload):
            said, dump = self.remember(store, "300", preload=preload, **settings)
            self.assertNotIn("in quarantine are not avoided", said)
            arms = {arm["arm"].split("+")[0] for c in dump["contexts"] for arm in c["arms"] if arm["calls"] > 0}
            return arms, dump["machine_id"]["mpi_library"]

        before, library = arms(self.path("no quarantine"), (PRELOAD,))
        self.assertIn("ring", before)
        store = self.path("quarantine of a slow disk")
        record = {"format": "railpass quarantine", "version": 1, "mpi_library": library,
                  "railpass_version": "0.2.0", "found_at": "2026-01-31T12:00:00Z",
                  "collective": "all_reduce", "algorithm": "ring", "variant": "ring", "num_ranks": 4,
                  "ranks_per_node": 2, "bytes": 4096, "elements": "MPI_INT", "difference": "1 wrong byte"}
        os.makedirs(os.path.join(store, "quarantine"))
        Path(store, "quarantine", "ring.json").write_text(json.dumps(record), encoding="utf-8")
        after, _ = arms(store, (PRELOAD, slow))
        self.assertEqual(after, before - {"ring"})

    def test_two_runs_at_once_and_one_that_is_killed(self):
        store, program = self.path("store of many"), self.program("remembered.c")
        self.remember(store, "300")
        kept = [p.read_bytes() for p in self.files_of(store)]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RAILPASS")}
        environment.update(RAILPASS_KNOWLEDGE=store, RAILPASS_CONF="", RAILPASS_SITE="", LD_PRELOAD=":".join(
            filter(None, (PRELOAD, os.environ.get("LD_PRELOAD")))))

        def begin(*arguments):
            return subprocess.Popen([MPIEXEC, "-n", str(RANKS), program, *arguments],
                                    env=environment, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        for run in [begin("300"), begin("300")]:
            out, err = run.communicate(timeout=300)
            self.assertEqual((run.returncode, out), (0, b"0 wrong\n"), err)
        killed = begin("300", "killed")
        killed.communicate(timeout=300)
        self.assertNotEqual(killed.returncode, 0)
        self.assertLessEqual(set(kept), {p.read_bytes() for p in self.files_of(store)})
        _, dump = self.remember(store, "300")
        self.assertIn("earlier runs", self.reasons(dump)[0])

    def test_a_store_that_is_none_and_one_that_is_damaged(self):
        place = self.path("a file")
        Path(place).write_text("no store")
        said, _ = self.remember(place, "300")
        self.assertIn("knowledge of this run is not kept", said)
        self.assertEqual(Path(place).read_text(), "no store")

        store = self.path("damaged store")
        self.remember(store, "300")
        damaged = {}
        for kept in self.files_of(store):
            text = bytearray(kept.read_bytes())
            text[len(text) // 2] ^= 1
            kept.write_bytes(text)
            damaged[kept] = text
        said, second = self.remember(store, "300")
        for kept, text in damaged.items():
            self.assertIn(kept.name, said)
            self.assertEqual(kept.read_bytes(), text)
        self.assertNotIn("earlier runs", self.reasons(second)[0])

    def test_fortran_with_mpif_h(self):
        self.check_fortran("with_mpif_h.f")

    def test_fortran_with_use_mpi(self):
        self.check_fortran("with_use_mpi.f90")

    def test_fortran_with_mpi_f08(self):
        self.check_fortran("with_mpi_f08.f90")

    def test_python(self):
        if subprocess.run([SYSTEM_PYTHON, "-c", "import mpi4py"], capture_output=True,
                          check=False).returncode != 0:
            self.skipTest("mpi4py is not installed")
        vendor = self.start(SYSTEM_PYTHON, "-c",
                            "from mpi4py import MPI; print(MPI.get_vendor()[0])", ranks=1).stdout
        if vendor.strip() != {"openmpi": "Open MPI", "mpich": "MPICH"}[FAMILY]:
            self.skipTest(f"mpi4py is for {vendor.strip()}")
        # mpi4py asks for MPI_THREAD_MULTIPLE.
        output, calls = self.tuned(SYSTEM_PYTHON, HERE / "collectives_of_python.py",
                                   RAILPASS_ALL_RANKS="on")
        self.assertEqual(output, self.start(SYSTEM_PYTHON, HERE / "collectives_of_python.py").stdout)
        self.assertLessEqual({"broadcast", "all_reduce", "all_gather"}, set(calls))

    def test_a_plug_in_that_jumps_into_mpi(self):
        program, plug_in = self.path("with_plug_in"), self.library("plug_in.c", "-O2")
        good, said = compile_with("cc", "with_plug_in.c", program, "-ldl")
        self.assertTrue(good, said)
        output, calls = self.tuned(program, plug_in)
        self.assertEqual(output, "")
        self.assertEqual(set(calls), {"all_reduce"})

    def test_another_mpi(self):
        other = {"openmpi": "mpich", "mpich": "openmpi"}[FAMILY]
        compiler, launcher = shutil.which(f"mpicc.{other}"), shutil.which(f"mpiexec.{other}")
        if not compiler or not launcher:
            self.skipTest(f"{other} is not installed")
        program = self.path("of_another_mpi")
        good, said = compile_with(compiler, "all_collectives.c", program)
        self.assertTrue(good, said)
        done = self.start(program, preload=(PRELOAD,), mpiexec=launcher)
        self.assertEqual(done.stdout, self.start(program, mpiexec=launcher).stdout)
        ours = [line for line in done.stderr.splitlines() if line.startswith("railpass: ")]
        self.assertEqual(len(ours), 1, done.stderr)
        for word in ("Open MPI", "MPICH", "nothing is tuned"):
            self.assertIn(word, ours[0])

    def test_a_program_without_mpi(self):
        done = subprocess.run(["true"], env={**os.environ, "LD_PRELOAD": PRELOAD}, timeout=300,
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


unittest.main(argv=[sys.argv[0], "-v", *CASES])

# SPDX-License-Identifier: BSL-1.0
"""The verbs that run under mpirun, as a user chains them: sample, fit, bench, stats, doctor."""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from program import MPIEXEC, PROGRAM, ProgramTest, main  # noqa: E402

ROW = {"collective", "bytes", "arm", "median_s", "p90_s", "runs", "ratio_to_native"}


class Sample(ProgramTest):
    def test_sample_fit_predict(self):
        samples, profile = self.path("samples.json"), self.path("profile.json")
        text = self.run_ranks(2, "sample", "--budget", "10s", "--json", samples).stdout
        self.assertIn("Same node", text)
        with open(samples, encoding="utf-8") as file:
            found = json.load(file)
        sizes = [link["bytes"] for link in found["links"]]
        self.assertEqual(sizes, sorted(sizes))
        self.assertGreaterEqual(len(sizes), 3)
        self.assertEqual(sizes[0], 1)
        for link in found["links"]:
            self.assertGreater(link["one_way_s"], 0)
        self.assertGreaterEqual(found["eager_limits_bytes"]["same_node"], 0)
        self.assertGreater(len(found["copies"]), 3)
        self.assertGreater(len(found["reductions"]), 3)
        self.assertGreater(len(found["handovers"]), 3)
        for sample in found["handovers"] + found.get("single_copies", []):
            self.assertGreater(sample["seconds"], 0)
        natives = {c["collective"] for c in found["collectives"]}
        self.assertLessEqual({"broadcast", "all_reduce", "all_to_all", "scan", "barrier"}, natives)

        self.assertGreater(found["core_share"], 0)
        self.assertLessEqual(found["core_share"], 1)
        told = {}
        for share in (0.9, 0.52):
            found["core_share"] = share
            with open(samples, "w", encoding="utf-8") as file:
                json.dump(found, file)
            told[share] = self.run_railpass("fit", samples, "-o", profile).stdout
            self.assertIn("residual spread", told[share])
        self.assertNotIn("busy cores", told[0.9])
        self.assertIn("busy cores: a rank had 52 % of a core", told[0.52])
        text = self.run_railpass("predict", "--profile", profile, "--collective", "broadcast",
                                 "-p", 2).stdout
        self.assertIn("busy cores: a rank had 52 % of a core", text)
        found = self.json_of("predict", "--profile", profile, "--collective", "all_reduce",
                             "-p", 2, "--ranks-per-node", 2, "--bytes", "64KiB")
        self.assertGreater(found["predictions"][0]["predicted_s"], 0)

    def test_ranks_that_share_a_core(self):
        samples, cores = self.path("samples.json"), os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cores)})
        try:
            text = self.run_ranks(2, "sample", "--budget", "5s", "--collectives", "broadcast",
                                  "--json", samples).stdout
        finally:
            os.sched_setaffinity(0, cores)
        self.assertIn("Sampled on busy cores", text)
        with open(samples, encoding="utf-8") as file:
            self.assertLess(json.load(file)["core_share"], 0.9)

    def test_over_rails(self):
        samples, profile = self.path("samples.json"), self.path("profile.json")
        rails = {"RAILPASS_RAILS": "127.0.0.2,127.0.0.3"}
        self.run_ranks(3, "sample", "--budget", "3s", "--collectives", "broadcast", "--json",
                       samples, environment=rails)
        self.run_railpass("fit", samples, "-o", profile)
        with open(profile, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["machine_id"]["rails"], "127.0.0.2,127.0.0.3")
        bench = ("bench", "--collectives", "broadcast", "--bytes", "64KiB", "--budget", "1s",
                 "--arms", "native,binomial")
        knowing = {"RAILPASS_PROFILE": profile}
        text = self.run_ranks(2, *bench, environment={**rails, **knowing}).stdout
        self.assertIn("arms over 127.0.0.2,127.0.0.3", text)
        self.check_ranks_refused(2, *bench, status=1, environment=knowing,
                                 says="measured over rails '127.0.0.2,127.0.0.3'")
        self.check_ranks_refused(2, "sample", status=1, environment={"RAILPASS_RAILS": "nosuch0"},
                                 says="nosuch0")

    def test_json_alone_on_standard_output(self):
        result = self.run_ranks(3, "sample", "--budget", "4s", "--json", "-")
        self.assertEqual(json.loads(result.stdout)["format"], "railpass samples")

    def test_bad_input(self):
        self.check_ranks_refused(1, "sample", says="at least 2 ranks")
        # What is wrong with the words alone is found before MPI begins.
        self.check_refused("sample", "--budget", "soon", says="--budget")
        self.check_refused("sample", "--budget", "0s", says="--budget")
        self.check_ranks_refused(2, "sample", "--collectives", "gossip", says="gossip")
        self.check_ranks_refused(2, "sample", "--json", self.path("no/such/s.json"), status=1,
                                 says="no/such")


class Bench(ProgramTest):
    def bench(self, ranks, *arguments, **options):
        result = self.run_ranks(ranks, "bench", *arguments, "--json", "-", **options)
        found = json.loads(result.stdout)
        environment = found["environment"]
        self.assertEqual(environment["num_ranks"], ranks)
        for row in found["results"]:
            self.assertLessEqual(ROW, set(row))
            self.assertIsInstance(row["bytes"], int)
            self.assertGreater(row["median_s"], 0)
            self.assertGreaterEqual(row["p90_s"], row["median_s"])
            self.assertGreaterEqual(row["runs"], 1)
        return found

    def test_chosen_arms(self):
        for ranks in (2, 3):
            with self.subTest(ranks=ranks):
                found = self.bench(ranks, "--bytes", "1KiB,8KiB", "--budget", "500ms", "--arms",
                                   "native,tuned,binomial+segment_bytes=4KiB,ring")
                arms = {(r["collective"], r["bytes"], r["arm"]) for r in found["results"]}
                self.assertEqual(arms, {(c, n, a) for n in (1024, 8192) for c, a in [
                    ("broadcast", "native"), ("broadcast", "tuned"),
                    ("broadcast", "binomial+segment_bytes=4KiB"),
                    ("all_reduce", "native"), ("all_reduce", "tuned"), ("all_reduce", "ring")]})
                medians = {(r["collective"], r["bytes"], r["arm"]): r["median_s"]
                           for r in found["results"]}
                for row in found["results"]:
                    native = medians[row["collective"], row["bytes"], "native"]
                    self.assertAlmostEqual(row["ratio_to_native"], row["median_s"] / native)

    def test_all_arms_and_first_calls(self):
        found = self.bench(3, "--collectives", "all_reduce", "--bytes", "4KiB", "--budget", "8s",
                           "--learning", 120)
        arms = {r["arm"] for r in found["results"]}
        self.assertLessEqual({"native", "tuned", "recursive_doubling", "ring"}, arms)
        self.assertEqual(len(arms), len(found["results"]))
        parts = found["learning"]
        self.assertEqual([(p["first_call"], p["calls"]) for p in parts], [(1, 100), (101, 20)])
        for part in parts:
            self.assertGreaterEqual(part["total_s"], part["worst_call_s"])
            self.assertGreaterEqual(part["best_worst_call_s"], part["best_median_s"])
            self.assertIn(part["best_arm"], arms - {"tuned"})
            self.assertLess(part["native_low"], part["ratio_to_native"])
            self.assertLess(part["ratio_to_native"], part["native_high"])
            if part["best_arm"] == "native":
                self.assertEqual(part["ratio_to_best"], part["ratio_to_native"])

    def test_launches(self):
        cell = ("--collectives", "broadcast", "--bytes", "1KiB", "--budget", "300ms", "--arms",
                "native,tuned,binomial", "--root", 1, "--all")
        saved = self.path("bench.json")
        done = self.run_railpass("bench", "--launches", 3, "-np", 2, *cell, "--json", saved)
        self.assertIn("3 launches are too few for intervals", done.stdout)
        self.assertIn("Too few launches", done.stdout)
        with open(saved, encoding="utf-8") as file:
            found = json.load(file)
        self.assertEqual(found["environment"]["num_ranks"], 2)
        self.assertEqual(found["environment"]["notes"]["launches"], "3")
        self.assertEqual(found["environment"]["notes"]["root"], "1")
        self.assertEqual({r["arm"] for r in found["results"]}, {"native", "tuned", "binomial"})
        for row in found["results"]:
            self.assertEqual(len(row["launch_medians_s"]), 3)
            self.assertEqual(row["median_s"], sorted(row["launch_medians_s"])[1])
            self.assertEqual(row["ratio_to_native"], sorted(row["launch_ratios"])[1])
            self.assertNotIn("ratio_low", row)
        self.run_railpass("fit", saved, "-o", self.path("profile.json"))
        said = self.run_railpass("bench", "--launches", 1, "-np", 2, *cell, "--csv").stdout
        self.assertEqual(len(said.strip().split("\n")), 4, said)
        one = self.run_ranks(2, "bench", *cell)
        self.assertIn("Intervals hold for this launch", one.stdout)

    def test_launches_that_have_ended_are_kept(self):
        saved = self.path("bench.json")
        command = ("bench", "--launches", 6, "-np", 2, "--bytes", 8, "--arms", "native,tuned", "--budget", "100ms",
                   "--json", saved, "--launcher")
        done = self.run_railpass(*command, self.failing_launcher(3, "echo broken >&2; exit 3"), status=1)
        self.assertIn("launch 3 of 6: ended with status 3: broken; the results are of 2 launches", done.stderr)
        with open(saved, encoding="utf-8") as file:
            rows = json.load(file)["results"]
        self.assertEqual({len(row["launch_medians_s"]) for row in rows}, {2})
        self.assertIn("2 launches are too few for intervals", done.stdout)
        os.remove(saved)
        os.remove(self.path("launches.log"))
        with subprocess.Popen([PROGRAM, *map(str, command), self.failing_launcher(2, "exec sleep 600")],
                              env=self.settings(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as process:
            log = self.path("launches.log")
            self.wait_until(lambda: os.path.exists(log) and os.path.getsize(log) == 2)
            process.send_signal(signal.SIGINT)
            problem = process.communicate(timeout=300)[1]
        self.assertEqual(process.returncode, 1, problem)
        self.assertIn("interrupted; the results are of 1 launches", problem)
        with open(saved, encoding="utf-8") as file:
            self.assertTrue(json.load(file)["results"])

    def test_launches_refused(self):
        self.check_refused("bench", "--launches", 0, says="--launches")
        self.check_refused("bench", "-n", 2, says="--launches")
        self.check_refused("bench", "--launches", 2, says="-n")
        self.check_refused("bench", "--launches", 2, "-n", 2, "--launcher", "true",
                           says="--launcher 'true'")
        self.check_ranks_refused(2, "bench", "--launches", 2, "-n", 2, says="--launches")
        own = self.write("launch", f'#!/bin/sh\necho launched >>{self.path("log")}\nexec {MPIEXEC} "$@"\n')
        os.chmod(own, 0o755)
        done = self.run_railpass("bench", "--launches", 1, "-n", 2, "--launcher", own, "--bytes", 8, "--arms", "native",
                                 "--budget", "100ms", environment={"RAILPASS_PLAN": self.path("none.json")})
        self.assertIn("railpass: RAILPASS_PLAN: ", done.stderr)
        with open(self.path("log"), encoding="utf-8") as file:
            self.assertGreaterEqual(len(file.readlines()), 2)  # what it is, and the launch
        # Which launch it was, and what its rank said.
        self.check_refused("bench", "--launches", 2, "-n", 2, "--root", 2, status=1,
                           says=("launch 1 of 2", "--root 2"), environment={"RAILPASS_MIN_BYTES": "x"})

    def test_round_time(self):
        for ranks in (2, 3):
            with self.subTest(ranks=ranks):
                found = self.bench(ranks, "--bytes", "1KiB", "--budget", "500ms",
                                   "--arms", "native,tuned", "--clock", "round_time")
                notes = found["environment"]["notes"]
                self.assertEqual(notes["clock"], "round_time")
                repetitions = int(notes["broadcast/1024/repetitions"])
                late = int(notes["broadcast/1024/late_rounds"])
                self.assertGreaterEqual(late, 0)
                runs = sum(r["runs"] for r in found["results"] if r["collective"] == "broadcast")
                # Both run once before the rounds, and once in each.
                self.assertEqual(runs - 2 + late, 2 * repetitions)
        self.check_ranks_refused(2, "bench", "--clock", "sundial", says="--clock")

    def test_every_collective(self):
        found = self.bench(3, "--collectives", "all", "--bytes", "7,8KiB", "--budget", "2s",
                           "--root", 1, "--arms", "native,tuned,linear,ring,pairwise,dissemination")
        algorithms = self.json_of("algorithms")
        cells = {(r["collective"], r["arm"]): r["bytes"] for r in found["results"]}
        self.assertEqual({c for c, _ in cells}, {a["collective"] for a in algorithms})
        for collective in {c for c, _ in cells}:
            self.assertIn((collective, "tuned"), cells)
            self.assertGreater(sum(c == collective for c, _ in cells), 2)
        # Equal blocks of whole elements for 3 ranks; blocks of any length; a byte from each.
        self.assertEqual(cells["all_gather", "native"], 8193)
        self.assertEqual(cells["reduce_scatter_block", "native"], 8208)
        self.assertEqual(cells["all_gatherv", "native"], 8192)
        self.assertEqual(cells["barrier", "native"], 3)

    def test_no_bytes_odd_bytes_and_another_root(self):
        found = self.bench(3, "--bytes", "0,1,7", "--budget", "500ms", "--root", 2, "--arms",
                           "native,tuned,linear,recursive_doubling")
        self.assertEqual({r["bytes"] for r in found["results"]}, {0, 1, 7})

    def test_table_dump_and_stats(self):
        dump = self.path("dump.json")
        text = self.run_ranks(2, "bench", "--bytes", "1KiB", "--budget", "1s", "--arms",
                              "native,tuned,ring,binomial",
                              environment={"RAILPASS_STATS": dump}).stdout
        self.assertIn("broadcast of 1KiB", text)
        self.assertRegex(text, r"(?m)^tuned +\d")
        # On a busy machine one of the two may have hardly any of the time.
        text = self.run_railpass("stats", dump, "--all").stdout
        self.assertIn("all_reduce of", text)
        self.assertIn("calls", text)
        self.assertIn("| arm |", self.run_railpass("stats", dump, "--markdown").stdout)
        lines = self.run_railpass("stats", dump, "--csv").stdout.strip().split("\n")
        self.assertGreater(len(lines), 2)
        self.assertEqual(len({len(line.split(",")) for line in lines}), 1)
        self.assertTrue(lines[0].startswith("communicator,collective,"))
        self.assertGreater(len(self.json_of("stats", dump)["contexts"]), 0)

    def test_bench_results_fit_a_profile(self):
        bench, profile = self.path("bench.json"), self.path("profile.json")
        self.run_ranks(3, "bench", "--bytes", "1KiB..64KiB", "--budget", "1s", "--arms",
                       "native,binomial,pipeline,linear,ring,recursive_doubling", "--json", bench)
        self.run_railpass("fit", bench, "-o", profile)
        # A profile of this very machine is accepted by a run, and so is one that says how long
        # the native arm takes.
        found = self.bench(3, "--bytes", "4KiB", "--budget", "1s", "--arms", "native,tuned",
                           environment={"RAILPASS_PROFILE": profile})
        self.assertEqual(found["environment"]["notes"]["profile"], profile)

    def test_bad_input(self):
        self.check_ranks_refused(1, "bench", says="at least 2 ranks")
        for arguments, says in {
                ("--collectives", "gossip"): "gossip",
                ("--collectives", ""): "--collectives",
                ("--bytes", "x"): "--bytes",
                ("--bytes", "4GiB"): "--bytes",
                ("--arms", "native,telepathy"): "telepathy",
                ("--arms", "native,,tuned"): "--arms",
                ("--collectives", "broadcast", "--arms", "ring"): "ring",
                ("--budget", "-1s"): "--budget",
                ("--learning", "0"): "--learning"}.items():
            with self.subTest(arguments=arguments):
                self.check_refused("bench", *arguments, says=says)
        self.check_ranks_refused(2, "bench", "--collectives", "gossip", says="gossip")
        self.check_ranks_refused(2, "bench", "--root", "2", says="--root")
        missing = {"RAILPASS_PROFILE": self.path("missing.json")}
        self.check_ranks_refused(2, "bench", "--budget", "1s", environment=missing, status=1,
                                 says="missing.json")


# Runs what follows where the kernel refuses process_vm_readv, as a container's profile may. Exit
# status 77: there are no such filters here.
REFUSING = """
import ctypes, os, platform, struct, sys
number = {"x86_64": 310, "aarch64": 270}.get(platform.machine())
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number or 0), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *s) for s in steps))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
program, prctl = Program(len(steps), ctypes.addressof(code)), ctypes.CDLL(None).prctl
if number is None or prctl(38, 1, 0, 0, 0) or prctl(22, 2, ctypes.byref(program)):
    sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Doctor(ProgramTest):
    def checks(self, result):
        found = json.loads(result.stdout)
        for check in found:
            self.assertEqual(set(check), {"check", "host", "ok", "message"})
        self.assertEqual(result.returncode, 0 if all(c["ok"] for c in found) else 1)
        return {c["check"]: c for c in found}

    def alone(self, *arguments, **options):
        command = [os.environ["RAILPASS"], "doctor", *arguments, "--json", "-"]
        return self.checks(self.start(command, **options))

    def test_healthy_things_are_not_reported(self):
        checks = self.alone()
        self.assertTrue(checks["mpi library"]["ok"], checks)
        self.assertTrue(checks["settings"]["ok"], checks)
        self.assertTrue(checks["profile"]["ok"], checks)
        self.assertTrue(checks["ranks and cores"]["ok"], checks)

    def test_settings(self):
        checks = self.alone(environment={"RAILPASS_POLICI": "x"})
        self.assertFalse(checks["settings"]["ok"])
        self.assertIn("polici", checks["settings"]["message"].lower())

    def test_profile_of_another_machine(self):
        bench = self.path("bench.json")
        self.run_ranks(2, "bench", "--collectives", "broadcast", "--bytes", "1KiB..8KiB",
                       "--budget", "1s", "--arms", "native,binomial,linear", "--json", bench)
        mine, other = self.path("profile.json"), self.path("other.json")
        self.run_railpass("fit", bench, "-o", mine)
        with open(mine, encoding="utf-8") as file:
            profile = json.load(file)
        profile["machine_id"]["cpu_model"] = "Imaginary 9000"
        self.write("other.json", json.dumps(profile))
        self.assertTrue(self.alone("--profile", mine)["profile"]["ok"])
        wrong = self.alone("--profile", other)["profile"]
        self.assertFalse(wrong["ok"])
        self.assertIn("Imaginary 9000", wrong["message"])

    def test_copies_that_the_kernel_refuses(self):
        doctor = [os.environ["RAILPASS"], "doctor", "--json", "-"]
        two = [os.environ["MPIEXEC"], "-n", "2"]
        for launcher in [], two:
            refused = self.start([*launcher, sys.executable, "-c", REFUSING, *doctor])
            if refused.returncode == 77:
                self.skipTest("no seccomp filter here")
            found = self.checks(refused)["copies between processes"]
            self.assertFalse(found["ok"])
            self.assertIn("refused (process_vm_readv)", found["message"])
        self.assertIn("not tried", self.alone()["copies between processes"]["message"])
        self.assertRegex(self.checks(self.start([*two, *doctor]))["copies between processes"]
                         ["message"], "^allowed|^refused")

    def test_more_ranks_than_cores(self):
        ranks = 2 * os.cpu_count()
        command = [os.environ["MPIEXEC"], "-n", str(ranks), os.environ["RAILPASS"], "doctor",
                   "--json", "-"]
        found = self.checks(self.start(command, environment={
            "OMPI_MCA_mpi_yield_when_idle": "0", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1000"}))
        self.assertFalse(found["ranks and cores"]["ok"], found)
        self.assertIn(f"{ranks} ranks", found["ranks and cores"]["message"])
        found = self.checks(self.start(command, environment={
            "OMPI_MCA_mpi_yield_when_idle": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}))
        self.assertTrue(found["ranks and cores"]["ok"], found)


if __name__ == "__main__":
    main()

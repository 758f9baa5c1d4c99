# SPDX-License-Identifier: BSL-1.0
"""railpass run: what the ranks it starts are given, and what it refuses. That calls are tuned then
is tested in tests/preload."""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from program import PROGRAM, ProgramTest, main  # noqa: E402

# MPICH's launcher dies of programs that end while it still begins: 3 of 150 runs of an echo, by itself.
SHOW = ("sh", "-c", 'sleep 0.2; echo "$LD_PRELOAD|$RAILPASS_SEED|$0|$1"', "zero", "-n one")


class Run(ProgramTest):
    def test_every_rank_gets_library_settings_and_arguments(self):
        done = self.run_railpass("run", "-n", 3, *SHOW, environment={"RAILPASS_SEED": "7"})
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 3, done.stdout)
        for line in lines:
            preload, *others = line.split("|")
            self.assertEqual(os.path.basename(preload), "librailpass_preload.so")
            self.assertTrue(os.path.exists(preload), preload)
            self.assertEqual(others, ["7", "zero", "-n one"])

    def test_other_preloaded_libraries_stay(self):
        other = self.path("other.so")
        done = self.run_railpass("run", "-n", 1, *SHOW, environment={"LD_PRELOAD": other})
        self.assertTrue(done.stdout.split("|")[0].endswith(f"librailpass_preload.so:{other}"),
                        done.stdout)

    def test_the_runtime_of_address_sanitizer_stays_first(self):
        source = self.write("main.c", '#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n'
                            'int main(void) { usleep(200000); puts(getenv("LD_PRELOAD")); }\n')
        program = self.path("program")
        compiler = shutil.which("gcc")
        if not compiler or self.start([compiler, "-fsanitize=address", source, "-o", program]).returncode != 0:
            self.skipTest("no gcc with AddressSanitizer")
        done = self.run_railpass("run", "-n", 1, program, environment={"ASAN_OPTIONS": "detect_leaks=0"})
        names = [os.path.basename(path).split(".")[0] for path in done.stdout.strip().split(":")]
        self.assertEqual(names[:2], ["libasan", "librailpass_preload"], done.stdout)

    def test_verbose_shows_a_command_that_can_be_repeated(self):
        done = self.run_railpass("run", "-n", 1, "--verbose", *SHOW)
        shown = [line for line in done.stderr.splitlines() if line.startswith("railpass run: ")]
        self.assertEqual(len(shown), 1, done.stderr)
        again = self.start(["sh", "-c", shown[0].removeprefix("railpass run: ")])
        self.assertEqual(again.stdout, done.stdout)

    def test_more_ranks_than_cores_are_allowed_and_nothing_is_printed(self):
        ranks = len(os.sched_getaffinity(0)) + 1
        if ranks > 16:
            self.skipTest("too many cores here")
        # As without what other tests need.
        refuses = {"OMPI_MCA_rmaps_base_oversubscribe": "0", "PRTE_MCA_rmaps_default_mapping_policy": ""}
        done = self.run_railpass("run", "-n", ranks, "sleep", 0.2, environment=refuses)
        self.assertEqual(done.stdout + done.stderr, "")

    def test_the_program_s_status_is_the_status(self):
        self.run_railpass("run", "-n", 1, "sh", "-c", "sleep 0.2; exit 3", status=3)

    def test_the_library_of_the_program_s_mpi(self):
        """Several MPIs in one prefix, none of them real: only names and sentences matter."""
        compiler = shutil.which("cc")
        if not compiler:
            self.skipTest("no C compiler")
        railpass = self.prefix_for_all()
        for name in ("mpiexec.mpich", "mpiexec.intel", "mpiexec.open", "srun"):
            says = {"mpiexec.mpich": "HYDRA build details:", "mpiexec.open": "mpiexec (OpenRTE) 4",
                    "mpiexec.intel": "Intel(R) MPI Library for Linux* OS"}.get(name, "slurm 23")
            self.write(name, f'#!/bin/sh\ncase "$1" in --version) echo "{says}";; '
                             '*) printf "%s\\n" "$*";; esac\n')
            os.chmod(self.path(name), 0o755)
        programs = {}
        for library, content in (("libmpich.so.12", ""), ("libmpi.so.12", "Intel(R) MPI Library 9"),
                                 ("libmpi.so.40", ""), ("libmpi_abi.so.0", "")):
            lib = self.path(library)
            self.write("lib.c", f'const char* version = "{content}"; int f(void) {{ return 0; }}')
            self.write("main.c", "int f(void); int main(void) { return f(); }")
            programs[library] = self.path("of_" + library)
            for command in ([compiler, "-shared", "-fPIC", self.path("lib.c"), "-o", lib,
                             f"-Wl,-soname,{library}"],
                            [compiler, self.path("main.c"), lib, "-o", programs[library],
                             f"-Wl,-rpath,{self.folder}"]):
                self.assertEqual(self.start(command).returncode, 0)

        def started(launcher, program, *options, more=()):
            return self.start([railpass, "run", "-n", "1", "--launcher", self.path(launcher),
                               *options, program, *more], {"RAILPASS_SEED": "7"})

        for launcher, library, family, option in (
                ("mpiexec.mpich", "libmpich.so.12", "mpich",
                 "-genv LD_PRELOAD {} -genv RAILPASS_ALL_RANKS on"),
                ("mpiexec.mpich", "libmpi_abi.so.0", "mpi_abi",
                 "-genv LD_PRELOAD {} -genv RAILPASS_ALL_RANKS on"),
                ("mpiexec.intel", "libmpi.so.12", "intelmpi",
                 "-genv LD_PRELOAD {} -genv RAILPASS_ALL_RANKS on"),
                ("mpiexec.open", "libmpi.so.40", "openmpi", 
                 "-x LD_PRELOAD={} -x RAILPASS_ALL_RANKS=on -x RAILPASS -x RAILPASS_KNOWLEDGE -x RAILPASS_CONF -x RAILPASS_SITE -x RAILPASS_SEED"),
                ("srun", "libmpich.so.12", "mpich", 
                 "--export=ALL,LD_PRELOAD={},RAILPASS_ALL_RANKS=on"),
                ("srun", "libmpi.so.40", "openmpi", 
                 "--export=ALL,LD_PRELOAD={},RAILPASS_ALL_RANKS=on")):
            with self.subTest(launcher=launcher, library=library):
                done = started(launcher, programs[library])
                folder = "" if family == self.family_of_build() else f"railpass/{family}/"
                expected = self.path(f"prefix/lib/{folder}librailpass_preload.so")
                self.assertEqual(done.stdout.strip(), f"-n 1 {option.format(expected)} "
                                 + programs[library], done.stderr)
        # A script does not tell its MPI: its launcher does, or the user.
        self.assertEqual(
            started("mpiexec.mpich", "/bin/sh").stdout.split()[:5],
            started("mpiexec.mpich", programs["libmpich.so.12"]).stdout.split()[:5])
        self.assertIn("mpi_abi", started("mpiexec.mpich", "/bin/sh", "--mpi", "mpi_abi").stdout)
        # Of several programs some may not be reached by the preload library.
        several = started("mpiexec.open", programs["libmpi.so.40"], more=(":", "-n", "1", "other"))
        self.assertIn("LD_PRELOAD=", several.stdout)
        self.assertNotIn("RAILPASS_ALL_RANKS", several.stdout)
        wrong = started("mpiexec.open", programs["libmpich.so.12"])
        self.assertEqual((wrong.returncode, wrong.stdout), (1, ""))
        self.assertIn("cannot start", wrong.stderr)
        for family in ("mpich", "openmpi"):
            if family != self.family_of_build():
                os.remove(self.path(f"prefix/lib/railpass/{family}/librailpass_preload.so"))
                launcher, library = {"mpich": ("mpiexec.mpich", "libmpich.so.12"),
                                     "openmpi": ("mpiexec.open", "libmpi.so.40")}[family]
                missing = started(launcher, programs[library])
                self.assertEqual(missing.returncode, 1)
                self.assertIn("--component preload", missing.stderr)

    def test_the_program_needs_no_mpi(self):
        if not shutil.which("readelf"):
            self.skipTest("no readelf")
        self.assertNotIn("libmpi", self.start(["readelf", "-d", PROGRAM]).stdout)

    def test_the_engine_of_the_launcher_runs_what_needs_mpi(self):
        railpass = self.prefix_for_all()
        unknown = self.start([railpass, "bench"])
        self.assertEqual(unknown.returncode, 1)
        self.assertEqual(unknown.stderr.count("librailpass.so"), 4, unknown.stderr)
        for family in ("intelmpi", "mpi_abi"):
            shutil.rmtree(self.path(f"prefix/lib/railpass/{family}"))
        for variable, family in (("OMPI_COMM_WORLD_RANK", "openmpi"), ("PMI_RANK", "mpich")):
            folder = "" if family == self.family_of_build() else f"{family}/"
            for verb in ("bench", "doctor"):
                done = self.start([railpass, verb], {variable: "0"})
                self.assertIn(f"libexec/railpass/{folder}railpass-mpi' cannot be started", done.stderr)

    def family_of_build(self):
        """By the library that the helper is linked with."""
        helper = os.path.join(os.path.dirname(PROGRAM), "../libexec/railpass/railpass-mpi")
        shown = self.start(["ldd", helper]).stdout
        return "openmpi" if "libmpi.so.40" in shown else "mpich"

    def prefix_for_all(self):
        """An installed railpass, with a preload library for every MPI; returns the program."""
        lib = self.path("prefix/lib")
        for family in ("openmpi", "mpich", "intelmpi", "mpi_abi"):
            os.makedirs(os.path.join(lib, "railpass", family))
            self.write(f"prefix/lib/railpass/{family}/librailpass_preload.so", "")
        self.write("prefix/lib/librailpass_preload.so", "")
        os.makedirs(self.path("prefix/bin"))
        return shutil.copy(PROGRAM, self.path("prefix/bin/railpass"))

    def test_refused(self):
        self.check_refused("run", "-n", 2, says="expected a program")
        self.check_refused("run", "-n", 0, "true", says="at least 1 rank")
        self.check_refused("run", "true", says="-n: expected how many ranks")
        self.check_refused("run", "-np", "x", "true", says="--ranks: 'x' is not a number")
        self.check_refused("run", "--rank", 2, "true", says="did you mean '--ranks'?")
        self.check_refused("rum", "-n", 2, "true", says="did you mean 'run'?")
        for program, says in {"./none": "no such file", "none-of-that": "not found in PATH",
                              self.write("plain", ""): "not executable"}.items():
            self.check_refused("run", "-n", 1, program, status=1, says=says)

    def test_ranks_as_others_say_them(self):
        for words, environment, count in ((["-np", 2], {}, 2), (["--verbose", "-np", 2, "--"], {}, 2),
                                          ([], {"SLURM_NTASKS": "3"}, 3), ([], {"PBS_NP": "2"}, 2),
                                          (["-n", 1], {"SLURM_NTASKS": "3"}, 1)):
            done = self.run_railpass("run", *words, *SHOW, "-np", environment=environment)
            self.assertEqual(len(done.stdout.splitlines()), count, done.stdout)
        self.check_refused("run", "true", environment={"SLURM_NTASKS": "many"},
                           says="SLURM_NTASKS='many'")

    def test_help_and_version(self):
        for words, says in {("help",): "Subcommands:", ("help", "run"): "number of ranks",
                            ("version",): "railpass ", ("-v",): "railpass "}.items():
            self.assertIn(says, self.run_railpass(*words).stdout)
        self.check_refused("run", "-n", 2, "--launcher", "echo", "true", says="--launcher 'echo'")


if __name__ == "__main__":
    main()

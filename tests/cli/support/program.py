# SPDX-License-Identifier: BSL-1.0
"""Runs the railpass program as a user would. Every run is bounded in time."""
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.environ["RAILPASS"]
MPIEXEC = os.environ.get("MPIEXEC", "mpirun")


class ProgramTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def settings(self, environment=None):
        """The environment of what is tested."""
        batch_system = ("SLURM_NTASKS", "PBS_NP", "LSB_DJOB_NUMPROC")
        settings = {k: v for k, v in os.environ.items()
                    if not k.startswith("RAILPASS_") and k not in batch_system}
        settings["RAILPASS_KNOWLEDGE"] = "off"  # the user's own is not to be touched
        settings["RAILPASS_CONF"] = settings["RAILPASS_SITE"] = ""  # nor does the site decide what is tested
        return settings | (environment or {})

    def start(self, command, environment=None, timeout=300):
        return subprocess.run(command, env=self.settings(environment), capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=timeout, check=False)

    def failing_launcher(self, launch, does):
        """A launcher whose launches from that number on do something else."""
        log = self.path("launches.log")
        own = self.write("launch", f'#!/bin/sh\ncase "$*" in *" bench "*) echo >>{log};; esac\n'
                                   f'[ -f {log} ] && [ $(wc -l <{log}) -ge {launch} ] && {{ {does}; }}\n'
                                   f'exec {MPIEXEC} "$@"\n')
        os.chmod(own, 0o755)
        return own

    def running(self, mark):
        """Processes that have the word in their environment."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):  # it has ended, or is somebody else's
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if mark.encode() in file.read() and int(pid) != os.getpid():
                        found.append(int(pid))
        return found

    def wait_until(self, happens):
        for _ in range(6000):
            if happens():
                return
            time.sleep(0.1)
        self.fail("it does not happen within ten minutes")

    def run_railpass(self, *arguments, status=0, **options):
        """Runs one process and checks its exit status."""
        result = self.start([PROGRAM, *map(str, arguments)], **options)
        self.assertEqual(result.returncode, status,
                         f"{arguments}\n{result.stderr}\n{result.stdout}")
        return result

    def run_ranks(self, ranks, *arguments, status=0, **options):
        result = self.start([MPIEXEC, "-n", str(ranks), PROGRAM, *map(str, arguments)], **options)
        self.assertEqual(result.returncode, status,
                         f"{ranks} ranks: {arguments}\n{result.stderr}\n{result.stdout}")
        return result

    def json_of(self, *arguments, **options):
        """What the program writes with --json -; nothing else may be on standard output."""
        return json.loads(self.run_railpass(*arguments, "--json", "-", **options).stdout)

    def check_refused(self, *arguments, status=2, says=(), **options):
        """One sentence on standard error that contains the words, nothing on standard output."""
        result = self.run_railpass(*arguments, status=status, **options)
        self.assertEqual(result.stdout, "")
        lines = result.stderr.strip().split("\n")
        self.assertEqual(len(lines), 1, result.stderr)
        for word in (says,) if isinstance(says, str) else says:
            self.assertIn(word, lines[0])
        return lines[0]

    def check_ranks_refused(self, ranks, *arguments, status=2, says="", **options):
        """The same under mpirun: said once, whatever mpirun itself adds."""
        result = self.run_ranks(ranks, *arguments, status=status, **options)
        self.assertEqual(result.stdout.strip(), "")
        ours = [line for line in result.stderr.split("\n") if line.startswith("railpass ")]
        self.assertEqual(len(ours), 1, result.stderr)
        self.assertIn(says, ours[0])


def main():
    unittest.main(argv=[sys.argv[0], "-v"])

# SPDX-License-Identifier: BSL-1.0
"""Does what the documents say, with a railpass that is installed from the build, and compares what comes.

    tutorials.py CMAKE BUILD_DIR [PAGE...]

All tutorials, and other pages that have console blocks. Of a page's fenced blocks, in their order:
  ```console       lines that begin with "$ " are commands (and go on where one ends with a backslash), the
                   lines after one what it prints. All commands of a page are typed into one shell.
  ```console root  the same; needs emulated hosts (bench/cluster), and is left out where there can be none.
  ```cpp NAME      any language with a name behind it: the file NAME is written.
Numbers stand for any numbers, spaces for any spaces, "..." for anything, and alone in a line for any lines.
Where a block of a page was left out, the status is 77.
"""

import os
import re
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
LIMIT_S = 600  # of one command, which takes seconds at most on an idle machine
SKIPPED = 77
NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"


class Shell:
    """One shell for all commands of a page, so that variables and folders stay."""

    def __init__(self, folder, environment):
        self.process = subprocess.Popen(["bash", "--norc"], cwd=folder, env=environment, text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        start_new_session=True)
        os.set_blocking(self.process.stdout.fileno(), False)

    def run(self, command):
        """What the command prints, and its status."""
        self.process.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n=== %s ===\\n' $?\n")
        self.process.stdin.flush()
        printed, end = "", time.monotonic() + LIMIT_S
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while not (done := re.search(r"\n=== (\d+) ===\n$", printed)):
                if not selector.select(max(0, end - time.monotonic())):
                    return printed, f"did not end within {LIMIT_S} s"
                text = self.process.stdout.read()
                if not text:
                    return printed, "ended the shell"
                printed += text
        return printed[:done.start()], int(done[1])

    def close(self):
        try:
            os.killpg(self.process.pid, 15)
        except ProcessLookupError:
            pass
        self.process.wait()


def pattern(line):
    """What the line stands for: between the parts that stand for any, text as it is."""
    parts = re.split(rf"({NUMBER}|\s+|\.\.\.)", line.strip())
    parts[::2] = map(re.escape, parts[::2])
    parts[1::2] = [".*" if part == "..." else r"\s+" if part.isspace() else NUMBER for part in parts[1::2]]
    return re.compile("".join(parts) + "$")


def matches(expected, printed):
    """Whether the lines are what is expected; "..." alone in a line stands for any number of them."""
    if not expected:
        return not printed
    if expected[0].strip() == "...":
        return any(matches(expected[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and bool(pattern(expected[0]).match(printed[0].strip())) and \
        matches(expected[1:], printed[1:])


def lines_of(text):
    return [line for line in text.splitlines() if line.strip()]


def commands(block):
    """The commands of a block, each with the lines that it is to print."""
    found = []
    goes_on = False
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], []])
        elif goes_on:
            found[-1][0] += "\n" + line
        elif line.strip():
            found[-1][1].append(line)
        goes_on = (line.startswith("$ ") or goes_on) and line.endswith("\\")
    return found


def emulated_hosts():
    """Why there can be none, or nothing."""
    tool = [sys.executable, str(TOP / "bench/cluster"), "--name", f"tutor{os.getpid()}x"]
    tried = subprocess.run([*tool, "run", "--hosts", "1", "--", "true"], text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
    return tried.stdout.strip() if tried.returncode else ""


def has_commands(page):
    return page.name != "README.md" and ("docs/tutorials" in str(page) or "\n```console" in page.read_text())


def follow(page, environment):
    """What does not come as the page says, and why a part of it was left out."""
    text = page.read_text()
    blocks = re.findall(r"^```(\w+)(?: +(\S+))?\n(.*?)^```$", text, re.M | re.S)
    if not any(language == "console" for language, _, _ in blocks):
        return "has no commands", ""
    left_out = ""
    with tempfile.TemporaryDirectory() as folder:
        shell = Shell(folder, environment)
        try:
            for language, what, block in blocks:
                if language != "console":
                    if what:
                        (Path(folder) / what).write_text(block)
                    continue
                if what == "root":
                    left_out = left_out or emulated_hosts()
                    if left_out:
                        continue
                for command, expected in commands(block):
                    printed, status = shell.run(command)
                    if status != 0 or not matches(expected, lines_of(printed)):
                        wanted = "\n".join(expected)
                        return f"$ {command}\nstatus {status}\nexpected:\n{wanted}\nprinted:\n{printed}", left_out
        finally:
            shell.close()
    return "", left_out


def main():
    cmake, build, *names = sys.argv[1:]
    pages = [Path(name) for name in names] or list(filter(has_commands, sorted((TOP / "docs").rglob("*.md"))))
    status = 0
    with tempfile.TemporaryDirectory() as prefix:
        subprocess.run([cmake, "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        library = next(Path(prefix).rglob("librailpass.so")).parent
        home = Path(prefix) / "home"
        home.mkdir()
        environment = {**os.environ, "PATH": f"{prefix}/bin:{os.environ['PATH']}", "HOME": str(home),
                       "PKG_CONFIG_PATH": str(library / "pkgconfig"), "LD_LIBRARY_PATH": str(library),
                       "source": str(TOP)}
        for page in pages:
            begun = time.monotonic()
            wrong, left_out = follow(page, environment)
            print(f"{page.name}: {time.monotonic() - begun:.1f} s", flush=True)
            if wrong:
                print(f"{page.name}: {wrong}")
                return 1
            if left_out:
                print(f"SKIPPED a part of {page.name}: {left_out}")
                status = SKIPPED
    return status


if __name__ == "__main__":
    sys.exit(main())

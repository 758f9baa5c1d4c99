# SPDX-License-Identifier: BSL-1.0
"""Every installed header compiles on its own.

    headers.py SOURCE_DIR facade|no-facade -- COMPILER FLAGS...
"""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(sys.argv[1])
FACADE = sys.argv[2] == "facade"
COMPILER = sys.argv[4:]


def needs_boost(header):
    return header.parent.name in ("railpass", "detail") and \
        header.name not in ("mpi.hpp", "options.hpp")


def compile_alone(header):
    name = str(header.relative_to(ROOT)).removeprefix("include/")
    done = subprocess.run([*COMPILER, "-fsyntax-only", "-x", "c++", "-"], text=True,
                          input=f'#include "{name}"\n', capture_output=True)
    return "" if done.returncode == 0 else f"{name} does not compile alone:\n{done.stderr}"


headers = [p for folder in ("include", "models", "collectives")
           for p in sorted((ROOT / folder).rglob("*.hpp")) if FACADE or not needs_boost(p)]
with ThreadPoolExecutor(2) as pool:
    problems = list(filter(None, pool.map(compile_alone, headers)))
print(f"{len(headers)} headers compiled")
print("\n".join(problems))
sys.exit(1 if problems or len(headers) < 30 else 0)

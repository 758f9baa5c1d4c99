# SPDX-License-Identifier: BSL-1.0
"""Every installed header compiles on its own.

    headers.py SOURCE_DIR FOLDER facade|no-facade -- COMPILER FLAGS...

FOLDER is for a file per header: with ccache before the COMPILER those that nothing has changed for
cost next to nothing.
"""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(sys.argv[1])
FOLDER = Path(sys.argv[2])
FACADE = sys.argv[3] == "facade"
COMPILER = sys.argv[5:]


def needs_boost(header):
    return header.parent.name in ("railpass", "detail") and \
        header.name not in ("mpi.hpp", "options.hpp", "function_set.hpp", "region.hpp", "set_call.hpp")


def compile_alone(header):
    name = str(header.relative_to(ROOT)).removeprefix("include/")
    source = FOLDER / name.replace("/", "_").replace(".hpp", ".cpp")
    source.write_text(f'#include "{name}"\n')
    # ccache keeps nothing of -fsyntax-only, and without optimisation the code costs no more.
    done = subprocess.run([*COMPILER, "-O0", "-c", source, "-o", source.with_suffix(".o")],
                          capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{name} does not compile alone:\n{done.stderr}"


FOLDER.mkdir(parents=True, exist_ok=True)
headers = [p for folder in ("include", "models", "collectives")
           for p in sorted((ROOT / folder).rglob("*.hpp")) if FACADE or not needs_boost(p)]
with ThreadPoolExecutor(2) as pool:
    problems = list(filter(None, pool.map(compile_alone, headers)))
print(f"{len(headers)} headers compiled")
print("\n".join(problems))
sys.exit(1 if problems or len(headers) < 30 else 0)

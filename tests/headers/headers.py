# SPDX-License-Identifier: BSL-1.0
"""Every installed header compiles on its own, the algorithms of a collective in one file, and all headers
of the library and of the program in one file: no two of them give one name to different things.

    headers.py SOURCE_DIR FOLDER facade|no-facade -- COMPILER FLAGS...

Programs reach the headers of algorithms through the registry alone, so the headers of one collective
share a file. A header that a source file of the project includes first compiles on its own if that source
file compiles. FOLDER is for these files: with ccache before the COMPILER those that nothing has changed
for cost next to nothing.
"""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path

ROOT = Path(sys.argv[1])
FOLDER = Path(sys.argv[2])
FACADE = sys.argv[3] == "facade"
COMPILER = sys.argv[5:]


def needs_boost(header):
    return header.parent.name in ("railpass", "detail") and \
        header.name not in ("mpi.hpp", "options.hpp", "function_set.hpp", "region.hpp", "set_call.hpp",
                            "array_view.hpp", "cartesian.hpp", "halo_exchange.hpp")


def name_of(header):
    return str(header.relative_to(ROOT)).removeprefix("include/")


def included_first():
    """Names of the headers that come first in a source file."""
    sources = [p for folder in ("collectives", "lib", "tests/unit") for p in (ROOT / folder).rglob("*.cpp")]
    found = (re.search(r'^#include [<"](.+?)[>"]', p.read_text(), re.MULTILINE) for p in sources)
    return {include[1] for include in found if include}


def compile_alone(headers):
    names = [name_of(header) for header in headers]
    source = FOLDER / ("all" if len(names) > 100 else names[0].replace("/", "_")).removesuffix(".hpp")
    source = source.with_suffix(".cpp")
    source.write_text("".join(f'#include "{name}"\n' for name in names))
    # ccache keeps nothing of -fsyntax-only, and without optimisation the code costs no more.
    done = subprocess.run([*COMPILER, "-O0", "-c", source, "-o", source.with_suffix(".o")],
                          capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{', '.join(names)} does not compile alone:\n{done.stderr}"


def compiled_together():
    """Lists of headers, each for one file."""
    headers = [p for folder in ("include", "models", "collectives")
               for p in sorted((ROOT / folder).rglob("*.hpp")) if FACADE or not needs_boost(p)]
    algorithms = [p for p in headers if p.parent.parent == ROOT / "collectives"]
    for _, of_a_collective in groupby(algorithms, lambda p: p.parent):
        yield list(of_a_collective)
    proven = included_first()
    for header in headers:
        if header not in algorithms and name_of(header) not in proven:
            yield [header]
    # Some headers of lib are lists that one other file includes.
    yield headers + [p for p in sorted((ROOT / "lib").rglob("*.hpp")) if "#pragma once" in p.read_text()]


FOLDER.mkdir(parents=True, exist_ok=True)
files = list(compiled_together())
with ThreadPoolExecutor(2) as pool:
    problems = list(filter(None, pool.map(compile_alone, files)))
print(f"{sum(map(len, files))} headers compiled in {len(files)} files")
print("\n".join(problems))
sys.exit(1 if problems or len(files) < 30 else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Boost.MPI's own examples and tests with the one-line port: do they build and pass, and whose
collectives do they call?

    git clone --branch boost-1.74.0 https://github.com/boostorg/mpi
    python3 bench/programs/boost_mpi.py BUILD mpi [--mpi openmpi] [--ranks 4] [names...]

The version is that of the installed Boost.MPI. Every program is built twice, as it is and with
railpass::boost_mpi in place of boost::mpi. Both must end alike. Each line says how many functions of railpass
the ported program has, and which collectives of Boost.MPI: only those by which railpass reduces objects without
an MPI datatype (reduce, all_reduce, scan, broadcast) and calls that stay Boost.MPI's by design may be there. Needs
some minutes; ends with 1 if a program differs.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

COLLECTIVES = ("all_gather", "all_gatherv", "all_reduce", "all_to_all", "broadcast", "gather", "gatherv",
               "reduce", "scan", "scatter", "scatterv")
INSIDE_RAILPASS = {"reduce", "all_reduce", "scan", "broadcast"}
ROOT = Path(__file__).resolve().parents[2]


def ported(text):
    """What names Boost.MPI's namespace names railpass'; what opens that namespace does not."""
    text = re.sub(r"\bboost::mpi\b", "railpass::boost_mpi", text)
    return "#include <railpass/boost_mpi.hpp>\n#line 1\n" + text


def build(o, folder, source, text):
    """The program, or None if it does not compile, and what the compiler said."""
    file, program = folder / source.name, folder / source.stem
    file.write_text(text)
    library = os.path.abspath(os.path.join(o.build, "lib"))
    done = subprocess.run(
        [f"mpicxx.{o.mpi}", "-std=c++20", "-w", "-O0", "-DOMPI_SKIP_MPICXX", f"-I{ROOT / 'include'}",
         f"-I{source.parent}", file, "-o", program, f"-L{library}", f"-Wl,-rpath,{library}", "-lrailpass",
         "-lboost_mpi", "-lboost_serialization"],
        capture_output=True, text=True, check=False)
    return program if done.returncode == 0 else None, done.stderr


def status_of(o, program):
    environment = {**os.environ, "RAILPASS_KNOWLEDGE": "off"}
    try:
        return subprocess.run([f"mpiexec.{o.mpi}", "-n", str(o.ranks), program], env=environment, timeout=120,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode
    except subprocess.TimeoutExpired:
        return "no end"


def whose(program):
    """The collectives in the program: of railpass and of Boost.MPI."""
    names = subprocess.run(["nm", "-C", program], capture_output=True, text=True, check=True).stdout
    return [sorted(re.findall(rf"(?m) [WT] (?:void |\S+ )?{space}::({'|'.join(COLLECTIVES)})[<(]", names))
            for space in ("railpass::boost_mpi", "boost::mpi")]


def compare(o, source):
    """What is wrong with the ported program, or nothing."""
    with tempfile.TemporaryDirectory() as temporary:
        text = source.read_text()
        original, said = build(o, Path(temporary), source, text)
        if not original:
            print(f"{source.stem}: left out, it does not build as it is: {said.splitlines()[0]}", flush=True)
            return False
        before = status_of(o, original)
        program, said = build(o, Path(temporary), source, ported(text))
        if not program:
            print(f"{source.stem}: DOES NOT BUILD\n{said}", flush=True)
            return True
        after = status_of(o, program)
        ours, boosts = whose(program)
    wrong = after != before or not set(boosts) <= INSIDE_RAILPASS
    print(f"{source.stem}: {'DIFFERENT' if wrong else 'the same'}, status {before} and {after}; "
          f"{len(ours)} functions of railpass, of Boost.MPI {sorted(set(boosts)) or 'none'}", flush=True)
    return wrong


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    options.add_argument("build")
    options.add_argument("source", type=Path)
    options.add_argument("names", nargs="*", default=[])
    options.add_argument("--mpi", default="openmpi")
    options.add_argument("--ranks", type=int, default=4)
    o = options.parse_args()
    programs = [path for folder in ("example", "test") for path in sorted((o.source / folder).glob("*.cpp"))
                if re.search(r"main *\(|BOOST_TEST_MODULE", path.read_text()) and (not o.names or path.stem in o.names)]
    if not programs:
        sys.exit(f"{o.source}: no programs in example and test")
    wrong = [source.stem for source in programs if compare(o, source)]
    sys.exit(f"different: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()

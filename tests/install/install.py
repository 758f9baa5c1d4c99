# SPDX-License-Identifier: BSL-1.0
"""Installs the build to a temporary prefix; builds and runs programs against that, with
find_package and with pkg-config.

    install.py CMAKE SOURCE_DIR BUILD_DIR MPI_COMPILER MPIEXEC facade|no-facade
"""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

CMAKE, SOURCE, BUILD, MPICXX, MPIEXEC, FACADE = sys.argv[1:]
HERE = Path(__file__).resolve().parent


def run(*command, **environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=300, env={**os.environ, **environment})
    if done.returncode != 0:
        sys.exit(f"{shlex.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(text, output):
    if text not in output:
        sys.exit(f"expected '{text}' in:\n{output}")


def build(project, binary, prefix):
    run(CMAKE, "-S", project, "-B", binary, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DMPI_CXX_COMPILER={MPICXX}", "-DCMAKE_BUILD_TYPE=Debug")
    run(CMAKE, "--build", binary)


with tempfile.TemporaryDirectory() as temporary:
    prefix, work = Path(temporary) / "prefix", Path(temporary)
    run(CMAKE, "--install", BUILD, "--prefix", prefix)

    build(HERE, work / "projects", prefix)
    expect("2 ranks right", run(MPIEXEC, "-n", "2", work / "projects/mpi_signatures"))
    expect("binomial found", run(work / "projects/models_alone"))
    if FACADE == "facade":
        build(Path(SOURCE) / "examples/broadcast", work / "example", prefix)
        expect("sum 2", run(MPIEXEC, "-n", "2", work / "example/broadcast"))

    pkgconfig = next(prefix.rglob("railpass.pc")).parent
    flags = run("pkg-config", "--cflags", "--libs", "railpass", PKG_CONFIG_PATH=str(pkgconfig))
    run(MPICXX, "-std=c++20", HERE / "mpi_signatures.cpp", "-o", work / "by_pkg_config",
        *flags.split())
    libraries = next(prefix.rglob("librailpass.so")).parent
    expect("2 ranks right", run(MPIEXEC, "-n", "2", work / "by_pkg_config",
                                LD_LIBRARY_PATH=str(libraries)))

    # Beside a railpass of another MPI.
    run(CMAKE, "--install", BUILD, "--component", "preload", "--prefix", work / "other")
    assert [path.parent.parent.name for path in (work / "other").rglob("librailpass_preload.so")
            if next(path.parent.glob("librailpass.so.*"), None)] == ["railpass"]

    expect("broadcast", run(prefix / "bin/railpass", "algorithms"))
    expect("librailpass_preload.so",
           run(prefix / "bin/railpass", "run", "-n", "2", "sh", "-c", "echo $LD_PRELOAD"))

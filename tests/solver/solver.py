# SPDX-License-Identifier: BSL-1.0
"""examples/solver: what it computes, with any number of ranks and either library, is what a serial
solver written here computes; a run that is interrupted goes on exactly; a file is whole or is the one
before.

    MPIEXEC=mpirun SOLVER=build/dev/examples/solver solver.py
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

try:
    import h5py
    import numpy
except ImportError as missing:
    print(f"SKIPPED: {missing} (Debian: python3-h5py)")
    sys.exit(77)

MPIEXEC, SOLVER = os.environ["MPIEXEC"], os.environ["SOLVER"]
failures = 0


def check(holds, what):
    global failures
    if not holds:
        failures += 1
        print(f"FAILED: {what}", flush=True)


def solver(ranks, *options, **environment):
    """Exit status and what it says."""
    ran = subprocess.run([MPIEXEC, "-n", str(ranks), SOLVER, *map(str, options)],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
                         stdin=subprocess.DEVNULL, env={**os.environ, **environment})
    return ran.returncode, ran.stdout


def read(path):
    with h5py.File(path) as file:
        return file["solution"][:], file["residuals"][:]


def serial(grid, tolerance):
    """Conjugate gradients of whole arrays."""
    def applied(p):
        result = 2 * p.ndim * p
        padded = numpy.pad(p, 1)
        for k in range(p.ndim):
            for first in (0, 2):
                result = result - padded[tuple(slice(first, first + n) if j == k else slice(1, 1 + n)
                                               for j, n in enumerate(p.shape))]
        return result
    x, r = numpy.zeros(grid), numpy.zeros(grid)
    r[tuple(n * (k + 1) // (len(grid) + 2) for k, n in enumerate(grid))] = 1
    p, squares = r.copy(), [numpy.sum(r * r)]
    while squares[-1] > tolerance**2 * squares[0]:
        q = applied(p)
        step = squares[-1] / numpy.sum(p * q)
        x, r = x + step * p, r - step * q
        squares.append(numpy.sum(r * r))
        p = r + squares[-1] / squares[-2] * p
    return x, numpy.sqrt(squares)


def same_as_serial(folder):
    path = os.path.join(folder, "same.h5")
    for grid in ([23, 17], [9, 8, 11]):
        x, residuals = serial(grid, 1e-9)
        for ranks in (1, 2, 4, 6):
            for library in ("mpi", "railpass"):
                status, said = solver(ranks, "--grid", *grid, "--tolerance", 1e-9, "--library",
                                      library, "--output", path)
                what = f"{grid} on {ranks} ranks by {library}"
                check(status == 0 and "iterations: " in said, f"{what}: {said}")
                found_x, found = read(path)
                check(len(found) == len(residuals), f"{what}: iterations")
                if len(found) == len(residuals):
                    check(numpy.allclose(found, residuals, rtol=1e-5, atol=0), f"{what}: residuals")
                check(numpy.allclose(found_x, x, rtol=0, atol=1e-8 * abs(x).max()),
                      f"{what}: solution")
                os.remove(path)


def goes_on_exactly(folder):
    whole, parts = os.path.join(folder, "whole.h5"), os.path.join(folder, "parts.h5")
    for library in ("mpi", "railpass"):
        # Sums in the same order, whoever makes them.
        common = ["--grid", 40, 30, "--library", library, "--tolerance", 0]
        said = [solver(4, *common, "--iterations", 90, "--every", 20, "--output", whole,
                       RAILPASS_REPRODUCIBLE="1"),
                solver(4, *common, "--iterations", 37, "--output", parts, RAILPASS_REPRODUCIBLE="1"),
                solver(4, *common, "--iterations", 90, "--output", parts, "--restart",
                       RAILPASS_REPRODUCIBLE="1")]
        check(all(status == 0 for status, _ in said), f"{library}: {said}")
        for of_whole, of_parts in zip(read(whole), read(parts)):
            check(numpy.array_equal(of_whole, of_parts), f"restarted by {library}: not the same")
        # With other ranks it goes on within rounding.
        solver(4, *common, "--iterations", 37, "--output", parts)
        status, text = solver(3, *common, "--iterations", 60, "--output", parts, "--restart")
        check(status == 0, text)
        check(numpy.allclose(read(parts)[1], read(whole)[1][:61], rtol=1e-6, atol=0),
              f"restarted on other ranks by {library}")


def is_whole_when_killed(folder):
    path = os.path.join(folder, "killed.h5")
    unfinished, caught = path + ".new", 0
    for attempt in range(40):
        process = subprocess.Popen([SOLVER, "--grid", "400", "500", "--every", "1", "--tolerance",
                                    "0", "--library", "mpi", "--output", path,
                                    *(["--restart"] if os.path.exists(path) else [])],
                                   stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            if os.path.exists(path) and os.path.exists(unfinished):
                break
        process.send_signal(signal.SIGKILL if attempt % 2 else signal.SIGTERM)
        process.wait(timeout=60)
        x, residuals = read(path)  # whole
        check(x.shape == (400, 500) and numpy.isfinite(x).all() and len(residuals) > 1,
              "after a signal: the file")
        caught += os.path.exists(unfinished)
        if caught >= 3:
            break
    check(caught >= 3, "no signal ended it while it wrote")
    before = len(read(path)[1])
    status, said = solver(2, "--grid", 400, 500, "--iterations", before + 4, "--restart",
                          "--tolerance", 0, "--output", path)
    check(status == 0 and len(read(path)[1]) == before + 5, f"after a signal: {said}")


def says_what_is_wrong(folder):
    path = os.path.join(folder, "wrong.h5")
    given = os.path.join(folder, "given.ini")

    def refused(text, *options, ranks=2):
        status, said = solver(ranks, *options)
        check(status != 0 and all(word in said for word in text.split()),
              f"{options}: expected '{text}', got {status} '{said}'")
    refused("--grid", "--grid", 0, 5)
    refused("--grid", "--grid", 5)
    refused("--tolerance", "--tolerance", -1)
    refused("--library mpi railpass", "--library", "other")
    refused("ranks: expected product 2", "--ranks", 3, 1)
    refused("ranks: expected 3", "--grid", 5, 5, 5, "--ranks", 2, 1)
    refused("grid: expected point rank", "--grid", 1, 1)
    refused(f"{path}: expected HDF5", "--restart", "--output", path)
    refused("/nowhere/x.h5: created", "--grid", 5, 5, "--output", "/nowhere/x.h5")
    with open(given, "w") as file:
        file.write("grid=[6, 7]\nspeed=3\n")
    refused("speed", "--input", given)
    with open(given, "w") as file:
        file.write("grid=[6, 7]\niterations=many\n")
    refused("iterations", "--input", given)
    with open(given, "w") as file:
        file.write(f"grid=[6, 7]\niterations=3\noutput={path}\n")
    status, said = solver(2, "--input", given, "--iterations", 2)
    check(status == 0 and "iterations: 2" in said and read(path)[0].shape == (6, 7), said)
    refused("grid", "--restart", "--grid", 6, 8, "--output", path)
    with open(path, "r+b") as file:
        file.truncate(100)
    refused(f"{path}: expected HDF5", "--restart", "--grid", 6, 7, "--output", path)


with tempfile.TemporaryDirectory() as scratch:
    for test in (same_as_serial, goes_on_exactly, is_whole_when_killed, says_what_is_wrong):
        test(scratch)
sys.exit(1 if failures else 0)

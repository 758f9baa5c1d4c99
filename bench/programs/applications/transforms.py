# SPDX-License-Identifier: BSL-1.0
"""Fourier transforms of a cube there and back with mpi4py-fft, on a grid of slabs or pencils as it chooses:
transforms.py POINTS REPETITIONS"""

import sys

import numpy as np
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray

POINTS, REPETITIONS = map(int, sys.argv[1:])

plan = PFFT(MPI.COMM_WORLD, (POINTS,) * 3, axes=(0, 1, 2), dtype=float)
field = newDistArray(plan, False)
field[:] = np.random.default_rng(MPI.COMM_WORLD.rank).random(field.shape)
before = field.copy()
spectrum = newDistArray(plan, True)

MPI.COMM_WORLD.Barrier()
start = MPI.Wtime()
for _ in range(REPETITIONS):
    plan.forward(field, spectrum)
    plan.backward(spectrum, field)
elapsed_s = MPI.Wtime() - start
if not np.allclose(field, before):
    sys.exit("the transforms there and back changed the field")
if MPI.COMM_WORLD.rank == 0:
    print(f"time {elapsed_s:.6f} s")

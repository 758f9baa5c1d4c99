# SPDX-License-Identifier: BSL-1.0
"""The program of first.c with mpi4py, which knows nothing of railpass."""
import sys

import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
features, rows = 8192, 4
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20000
data = (7 * numpy.arange(rows * features) + 13 * world.rank) % 101 / 101
model, total = numpy.zeros(features), numpy.zeros(features)
for step in range(steps):
    row = data[step % rows * features:][:features]
    gradient = (row @ model - 1) * row / (features * world.size)
    world.Allreduce(gradient, total)
    model -= total
if world.rank == 0:
    print(f"{steps} steps on {world.size} ranks: model[1] = {model[1]:.9f}")

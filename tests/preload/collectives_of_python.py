# SPDX-License-Identifier: BSL-1.0
"""A program that uses mpi4py: objects and arrays, communicators that come and go."""
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
wrong = 0
for i in range(30):
    root = i % world.size
    wrong += world.bcast({"round": i} if world.rank == root else None, root) != {"round": i}
    values = array("i", range(i, i + 1000)) if world.rank == root else array("i", [0] * 1000)
    world.Bcast([values, MPI.INT], root)
    wrong += values != array("i", range(i, i + 1000))
    wrong += world.allreduce(i) != i * world.size
    total = array("d", [0.0] * 10)
    world.Allreduce([array("d", [float(i)] * 10), MPI.DOUBLE], [total, MPI.DOUBLE])
    wrong += total != array("d", [float(i * world.size)] * 10)
    everything = array("i", [0] * world.size)
    world.Allgather([array("i", [world.rank]), MPI.INT], [everything, MPI.INT])
    wrong += everything != array("i", range(world.size))
    half = world.Split(world.rank % 2, world.rank)
    wrong += half.allgather(world.rank) != list(range(world.rank % 2, world.size, 2))
    half.Free()
    world.Barrier()
if world.reduce(wrong) is not None:
    print("wrong:", wrong)

// SPDX-License-Identifier: BSL-1.0
//
// A program that makes the same calls with memory of its own first, and with a GPU's once it has
// loaded the driver, which is fake_driver.c: late_driver LIBRARY.
#include <mpi.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { count = 4, calls = 100 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int data[count];
  for (int i = 0; i < calls; ++i) {
    for (int k = 0; k < count; ++k) data[k] = rank == 0 ? i + k : -1;
    MPI_Bcast(data, count, MPI_INT, 0, MPI_COMM_WORLD);
    for (int k = 0; k < count; ++k) wrong += data[k] != i + k;
  }
  void* const driver = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
  if (!driver) {
    fprintf(stderr, "late_driver: %s\n", dlerror());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  void* (*const allocate)(size_t) = (void* (*)(size_t))dlsym(driver, "fake_allocate");
  void (*const copy)(void*, const void*, size_t) =
      (void (*)(void*, const void*, size_t))dlsym(driver, "fake_copy");
  int (*const touches)(void) = (int (*)(void))dlsym(driver, "fake_touches");
  void* const there = allocate(4096);
  for (int i = 0; i < calls; ++i) {
    for (int k = 0; k < count; ++k) data[k] = rank == 0 ? 2 * i + k : -1;
    copy(there, data, sizeof data);
    MPI_Bcast(there, count, MPI_INT, 0, MPI_COMM_WORLD);
    copy(data, there, sizeof data);
    for (int k = 0; k < count; ++k) wrong += data[k] != 2 * i + k;
  }
  wrong += touches();
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%d wrong\n", wrong);
  MPI_Finalize();
  return 0;
}

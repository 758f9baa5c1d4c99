// SPDX-License-Identifier: BSL-1.0
//
// A program whose last rank loads a library, the driver of a GPU, between its calls:
// device_on_one LIBRARY.
#include <mpi.h>

#include <dlfcn.h>
#include <stdio.h>

enum { count = 4, calls = 4000, late = 500 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int data[count];
  for (int i = 0; i < calls; ++i) {
    if (i == late && rank == ranks - 1 && (argc != 2 || !dlopen(argv[1], RTLD_NOW))) {
      fprintf(stderr, "device_on_one: %s\n", dlerror());
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int k = 0; k < count; ++k) data[k] = rank == 0 ? i + k : -1;
    MPI_Bcast(data, count, MPI_INT, 0, MPI_COMM_WORLD);
    for (int k = 0; k < count; ++k) wrong += data[k] != i + k;
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%d wrong\n", wrong);
  MPI_Finalize();
  return 0;
}

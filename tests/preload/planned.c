// SPDX-License-Identifier: BSL-1.0
//
// Sums of numbers that round: planned CALLS. Prints the bits of the sums, and how many of the
// program's calls reached the MPI library's MPI_Allreduce, in MPI_COMM_WORLD and in a part of it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { elements = 1000 };

static int native = 0;

// Called by the preload library instead of the MPI library's.
int PMPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  static int (*real)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm) = NULL;
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "PMPI_Allreduce");
  if (count == elements) ++native;
  return real(in, out, count, type, op, comm);
}

static int sum(MPI_Comm comm, int calls) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  static double in[elements], out[elements];
  unsigned long long all = 0;
  native = 0;
  for (int call = 0; call < calls; ++call) {
    for (int i = 0; i < elements; ++i) in[i] = 1.0 / (3 + i + 7 * rank + call);
    MPI_Allreduce(in, out, elements, MPI_DOUBLE, MPI_SUM, comm);
    for (int i = 0; i < elements; ++i) {
      unsigned long long bits = 0;
      memcpy(&bits, out + i, sizeof bits);
      all = all * 31 + bits;
    }
  }
  if (rank == 0) printf("%016llx ", all);
  return native;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int calls = argc > 1 ? atoi(argv[1]) : 0;
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1, rank, &part);
  const int of_world = sum(MPI_COMM_WORLD, calls), of_part = sum(part, calls);
  if (rank == 0) printf("%d %d\n", of_world, of_part);
  MPI_Comm_free(&part);
  MPI_Finalize();
  return 0;
}

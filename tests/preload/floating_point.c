// SPDX-License-Identifier: BSL-1.0
//
// A program with traps and a rounding of its own: its operations see both in every call, and no
// call raises an exception that the program has not raised.
#define _GNU_SOURCE
#include <mpi.h>

#include <fenv.h>
#include <stdio.h>

enum { traps = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW, most_count = 2000, calls = 600 };

static int wrong, trapped;

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  wrong += fegetround() != FE_UPWARD || fegetexcept() != trapped;
  for (int i = 0; i < *count; ++i) ((double*)inout)[i] += ((double*)in)[i];
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  feenableexcept(traps);
  trapped = fegetexcept();  // more of them where something else has switched these on
  fesetround(FE_UPWARD);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Op sum = MPI_OP_NULL;
  MPI_Op_create(add, 1, &sum);
  static double in[most_count], out[most_count];
  for (int i = 0; i < calls; ++i) {
    const int count = 1 + i % 3 * 700;
    for (int k = 0; k < count; ++k) in[k] = rank + k;
    MPI_Allreduce(in, out, count, MPI_DOUBLE, i % 2 ? sum : MPI_SUM, MPI_COMM_WORLD);
    wrong += out[count - 1] != ranks * (count - 1.0) + ranks * (ranks - 1) / 2;
    MPI_Bcast(out, count, MPI_DOUBLE, i % ranks, MPI_COMM_WORLD);
    wrong += fegetround() != FE_UPWARD || fegetexcept() != trapped || fetestexcept(traps);
  }
  MPI_Op_free(&sum);
  int all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d wrong\n", all);
  MPI_Finalize();
  return 0;
}

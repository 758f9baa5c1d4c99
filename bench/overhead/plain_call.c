// SPDX-License-Identifier: BSL-1.0
//
// A program that knows nothing of railpass, for preloaded.py: broadcasts of one byte, and what one
// takes. Rank 0, the root, prints nanoseconds per call, one number per repetition.
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int calls = argc > 1 ? atoi(argv[1]) : 0, repetitions = argc > 2 ? atoi(argv[2]) : 0;
  if (calls < 1 || repetitions < 1) {
    fprintf(stderr, "usage: plain_call CALLS REPETITIONS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char byte = 1;
  for (int i = 0; i < 1000; ++i) MPI_Bcast(&byte, 1, MPI_CHAR, 0, MPI_COMM_WORLD);
  for (int r = 0; r < repetitions; ++r) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin_s = MPI_Wtime();
    for (int i = 0; i < calls; ++i) MPI_Bcast(&byte, 1, MPI_CHAR, 0, MPI_COMM_WORLD);
    const double seconds = MPI_Wtime() - begin_s;
    if (rank == 0) printf("%.3f\n", seconds / calls * 1e9);
  }
  MPI_Finalize();
  return 0;
}

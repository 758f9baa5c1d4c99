// SPDX-License-Identifier: BSL-1.0
//
// Makes the same calls as in each run before: remembered CALLS [HOW], where HOW is what the last rank
// does after them: "killed".
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int calls = argc > 1 ? atoi(argv[1]) : 0;
  int rank = 0, size = 1, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  static double in[131072], out[131072];
  for (int i = 0; i < 131072; ++i) in[i] = i;
  for (int i = 0; i < calls; ++i) {
    MPI_Allreduce(in, out, 131072, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (out[131071] != 131071.0 * size) ++wrong;
  }
  if (argc > 2 && strcmp(argv[2], "killed") == 0 && rank == size - 1) raise(SIGKILL);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%d wrong\n", wrong);
  MPI_Finalize();
  return 0;
}

// SPDX-License-Identifier: BSL-1.0
//
// A communicator without the world's rank 0, of which one rank comes late to MPI_Finalize. Its
// leader has told the world's rank 0 of the broadcasts, and not yet of the reductions. 4 ranks.
#define _POSIX_C_SOURCE 199309L
#include <mpi.h>

#include <stdio.h>
#include <time.h>

enum { count = 150000 };

static double in[count], out[count];

int main(int argc, char** argv) {
  int rank, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &part);
  for (int call = 0; rank > 0 && call < 300; ++call) {
    in[count - 1] = rank == 1 ? call : -1;
    MPI_Bcast(in, count, MPI_DOUBLE, 0, part);
    wrong += in[count - 1] != call;
  }
  for (int call = 0; rank > 0 && call < 6; ++call) {
    in[count - 1] = rank;
    MPI_Reduce(in, out, count, MPI_DOUBLE, MPI_SUM, 0, part);
    wrong += rank == 1 && out[count - 1] != 1 + 2 + 3;
  }
  printf("%s", wrong ? "wrong\n" : "");
  if (rank == 3) nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
  MPI_Finalize();
  return 0;
}

/* SPDX-License-Identifier: BSL-1.0
 *
 * plain CALLS: that many broadcasts and all_reduces of 4 KiB, 64 KiB and 1 MiB in turn, and little
 * else. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

enum { sizes = 3, most = 1 << 17 };

static double sent[most], received[most];

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const long calls = argc == 2 ? atol(argv[1]) : 0;
  if (calls < 1) MPI_Abort(MPI_COMM_WORLD, 2);
  static const int counts[sizes] = {1 << 9, 1 << 13, most};
  MPI_Barrier(MPI_COMM_WORLD);
  const double began_s = MPI_Wtime();
  for (long i = 0; i < calls; ++i)
    for (int s = 0; s < sizes; ++s) {
      MPI_Bcast(sent, counts[s], MPI_DOUBLE, 0, MPI_COMM_WORLD);
      MPI_Allreduce(sent, received, counts[s], MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
  if (rank == 0) printf("time %.6f s\n", MPI_Wtime() - began_s);
  MPI_Finalize();
  return 0;
}

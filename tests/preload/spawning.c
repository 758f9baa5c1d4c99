/* SPDX-License-Identifier: BSL-1.0 */
/* Two ranks spawn two more, which have a world of their own. Both worlds add up. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm parent, children;
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL)
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                   MPI_ERRCODES_IGNORE);
  double sum = 0;
  for (int i = 1; i <= 100; ++i) {
    double mine = i, all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    sum += all;
  }
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* The parent's files are the last. */
  MPI_Comm other = parent == MPI_COMM_NULL ? children : parent;
  MPI_Barrier(other);
  MPI_Comm_disconnect(&other);
  if (rank == 0) printf("%g\n", sum);
  MPI_Finalize();
  return sum == 10100 ? 0 : 1;
}

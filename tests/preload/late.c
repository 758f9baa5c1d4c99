// SPDX-License-Identifier: BSL-1.0
//
// The last rank comes late to the first collective and to MPI_Finalize: not before the log, whose
// name is the argument, says that another rank waits there.
#include "log_says.h"

#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == size - 1) wait_until_log_says(argv[1], "agree whether a communicator is tuned");
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == size - 1) wait_until_log_says(argv[1], "is inside MPI_Finalize");
  MPI_Finalize();
  return 0;
}

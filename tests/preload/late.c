// SPDX-License-Identifier: BSL-1.0
//
// The last rank comes late to the first collective and to MPI_Finalize: not before the log, whose
// name is the argument, says that another rank waits there.
#include <mpi.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int log_has(const char* log, const char* words) {
  char line[4096];
  FILE* file = fopen(log, "r");
  int found = 0;
  while (file && !found && fgets(line, sizeof line, file)) found = strstr(line, words) != NULL;
  if (file) fclose(file);
  return found;
}

static void come_late(const char* log, const char* words) {
  for (int tenths = 0; tenths < 1000 && !log_has(log, words); ++tenths) usleep(100000);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == size - 1) come_late(argv[1], "agree whether a communicator is tuned");
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == size - 1) come_late(argv[1], "is inside MPI_Finalize");
  MPI_Finalize();
  return 0;
}

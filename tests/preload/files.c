// SPDX-License-Identifier: BSL-1.0
//
// MPI-IO, whose implementation calls collectives itself: writes a file in strips, reads it back.
#include <mpi.h>

#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, num_ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  enum { strip = 1000, strips = 40 };
  int values[strip];
  MPI_File file;
  if (argc < 2 || MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR,
                                MPI_INFO_NULL, &file) != MPI_SUCCESS)
    MPI_Abort(MPI_COMM_WORLD, 2);
  for (int s = 0; s < strips; ++s) {
    for (int i = 0; i < strip; ++i) values[i] = s * 7 + rank * 1000 + i;
    const MPI_Offset place = (MPI_Offset)(s * num_ranks + rank) * strip * (MPI_Offset)sizeof(int);
    MPI_File_write_at_all(file, place, values, strip, MPI_INT, MPI_STATUS_IGNORE);
  }
  MPI_File_sync(file);
  long wrong = 0;
  const int other = (rank + 1) % num_ranks;
  for (int s = 0; s < strips; ++s) {
    const MPI_Offset place = (MPI_Offset)(s * num_ranks + other) * strip * (MPI_Offset)sizeof(int);
    MPI_File_read_at_all(file, place, values, strip, MPI_INT, MPI_STATUS_IGNORE);
    for (int i = 0; i < strip; ++i) wrong += values[i] != s * 7 + other * 1000 + i;
  }
  MPI_File_close(&file);
  long all = -1;
  MPI_Reduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%ld wrong values\n", all);
  MPI_Finalize();
  return 0;
}

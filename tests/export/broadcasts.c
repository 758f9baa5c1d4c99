// SPDX-License-Identifier: BSL-1.0
//
// A program that knows nothing of railpass: so many broadcasts of so many bytes.
//
//     broadcasts CALLS BYTES
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int calls = atoi(argv[1]), bytes = atoi(argv[2]);
  char* const data = calloc((size_t)bytes, 1);
  MPI_Init(NULL, NULL);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < calls; ++i) {
    data[0] = data[bytes - 1] = (char)(rank == 0 ? i : -1);
    MPI_Bcast(data, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (data[0] != (char)i || data[bytes - 1] != (char)i) {
      fprintf(stderr, "wrong data in call %d\n", i);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  MPI_Finalize();
  free(data);
  return 0;
}

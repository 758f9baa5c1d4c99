// SPDX-License-Identifier: BSL-1.0
//
// A profiler as people write them: counts a program's broadcasts and messages, and calls PMPI.
#include <mpi.h>

#include <stdio.h>

static long broadcasts, messages;

int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  ++broadcasts;
  return PMPI_Bcast(buffer, count, type, root, comm);
}

int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  ++messages;
  return PMPI_Isend(buffer, count, type, to, tag, comm, request);
}

int MPI_Finalize(void) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("profiler: %ld broadcasts, %ld messages\n", broadcasts, messages);
  return PMPI_Finalize();
}

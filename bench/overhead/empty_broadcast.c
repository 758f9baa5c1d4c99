// SPDX-License-Identifier: BSL-1.0
//
// Preloaded behind railpass by preloaded.py: the MPI library's broadcast does nothing, so what is
// left of a call is what railpass adds.
#include <mpi.h>

int PMPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  (void)buffer, (void)count, (void)type, (void)root, (void)comm;
  return MPI_SUCCESS;
}
int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return PMPI_Bcast(buffer, count, type, root, comm);
}

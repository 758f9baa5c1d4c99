// SPDX-License-Identifier: BSL-1.0
//
// An MPI library whose broadcast and all-to-all take 20 ms longer, whatever the machine does.
// Loaded behind the preload library.
#define _GNU_SOURCE
#include <mpi.h>

#include <dlfcn.h>
#include <unistd.h>

int PMPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  int (*const real)(void*, int, MPI_Datatype, int, MPI_Comm) = dlsym(RTLD_NEXT, "PMPI_Bcast");
  usleep(20000);
  return real(buffer, count, type, root, comm);
}
int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return PMPI_Bcast(buffer, count, type, root, comm);
}

int PMPI_Alltoall(const void* send, int sent, MPI_Datatype sent_type, void* receive, int received,
                  MPI_Datatype received_type, MPI_Comm comm) {
  int (*const real)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm) =
      dlsym(RTLD_NEXT, "PMPI_Alltoall");
  usleep(20000);
  return real(send, sent, sent_type, receive, received, received_type, comm);
}
int MPI_Alltoall(const void* send, int sent, MPI_Datatype sent_type, void* receive, int received,
                 MPI_Datatype received_type, MPI_Comm comm) {
  return PMPI_Alltoall(send, sent, sent_type, receive, received, received_type, comm);
}

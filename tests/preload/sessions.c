// SPDX-License-Identifier: BSL-1.0
//
// A program that has no MPI_COMM_WORLD: its communicator comes from a session (MPI 4.0, 11.3).
#include <mpi.h>

#include <stdio.h>

int main(void) {
#if MPI_VERSION >= 4
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  int rank = 0, num_ranks = 1, wrong = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &num_ranks);
  for (int i = 0; i < 50; ++i) {
    int sum = 0;
    MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, comm);
    wrong += sum != num_ranks * i;
  }
  if (rank == 0) printf("%d wrong\n", wrong);
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
  MPI_Session_finalize(&session);
#else
  printf("no sessions\n");
#endif
  return 0;
}

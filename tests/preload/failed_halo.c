// SPDX-License-Identifier: BSL-1.0
//
// A halo exchange whose creation fails on all ranks. The program's error handler leaves it by a
// longjmp; the collectives that follow are right.
#include <mpi.h>

#include <railpass/railpass.h>
#include <setjmp.h>
#include <stdio.h>

static int fails;

// The exchange's calls come here.
int PMPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  const int code = MPI_Waitall(count, requests, statuses);
  return fails ? MPI_ERR_OTHER : code;
}

static jmp_buf back;
static void handler(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  longjmp(back, 1);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, num_ranks = 0, wrong = 0;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &num_ranks);
  MPI_Errhandler by = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(handler, &by);
  MPI_Comm_set_errhandler(comm, by);

  double values[6] = {0};
  void* field = values;
  const int periodic = 1;
  const int64_t interior = 4, width = 1;
  railpass_halo halo = NULL;
  if (setjmp(back)) {
    if (rank == 0) printf("caught\n");
  } else {
    fails = 1;
    railpass_halo_create(comm, 1, &num_ranks, &periodic, 1, &field, &interior, &width, MPI_DOUBLE,
                         0, &halo);
  }
  fails = 0;

  for (int call = 0; call < 20; ++call) {
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    wrong += sum != num_ranks * (num_ranks - 1) / 2;
  }
  if (wrong > 0) printf("%d wrong\n", wrong);
  MPI_Errhandler_free(&by);
  MPI_Finalize();
  return 0;
}

// SPDX-License-Identifier: BSL-1.0
//
// A program whose error handler leaves by a longjmp, now and then, on one rank alone; the calls in
// between are right.
#include <mpi.h>

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

enum { rounds = 60, most = 4000 };

static jmp_buf back;
static void handler(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  longjmp(back, 1);
}

static int rank, num_ranks, wrong, caught;
static MPI_Comm comm;
static int in[most], out[most];

// A handle that is none. (Open MPI looks for marks of a freed one at its address.)
static MPI_Comm invalid(void) {
#ifdef OMPI_MAJOR_VERSION
  static char freed[8192];
  memset(freed, -1, sizeof freed);
  return (MPI_Comm)freed;
#else
  return (MPI_Comm)0x12345678;
#endif
}

static void fail(int how) {
  if (setjmp(back))
    ++caught;
  else if (how == 0)
    MPI_Bcast(in, 1, MPI_INT, num_ranks + 5, comm);
  else if (how == 1)
    MPI_Barrier(invalid());
  else if (how == 2) {
    MPI_Comm none = MPI_COMM_NULL;
    MPI_Comm_free(&none);
  } else if (how == 3) {
    MPI_Comm wrong_one = invalid();
    MPI_Comm_free(&wrong_one);
  } else
    MPI_Allreduce(in, out, 1, MPI_INT, MPI_OP_NULL, comm);
}

// Deeper on the stack than where it failed, and not so deep.
static void calls_below(int round) {
  volatile char deep[2000];
  deep[round] = (char)round;
  wrong += deep[round] != (char)round;
  for (int k = 0; k < 3; ++k) {
    const int n = k ? most : 4;
    for (int j = 0; j < n; ++j) in[j] = rank + j + round;
    MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, comm);
    for (int j = 0; j < n; ++j)
      wrong += out[j] != num_ranks * (j + round) + num_ranks * (num_ranks - 1) / 2;
    MPI_Bcast(in, n, MPI_INT, round % num_ranks, comm);
    wrong += in[1] != round % num_ranks + 1 + round;
  }
}

// With calls, so that it is tuned.
static void make_and_free(void) {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(comm, &copy);
  for (int k = 0; k < 12; ++k) {
    int sum = 0;
    MPI_Allreduce(&k, &sum, 1, MPI_INT, MPI_SUM, copy);
    wrong += sum != k * num_ranks;
  }
  MPI_Comm_free(&copy);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Errhandler by = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(handler, &by);
  MPI_Comm_set_errhandler(comm, by);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, by);
  for (int round = 0; round < rounds; ++round) {
    calls_below(round);
    make_and_free();
    if (round % 10 == 5 && rank == 0)
      for (int how = 0; how < 5; ++how) fail(how);
  }
  MPI_Errhandler_free(&by);
  MPI_Comm_free(&comm);
  int all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d caught, %d wrong\n", caught, all);
  MPI_Finalize();
  return 0;
}

/* SPDX-License-Identifier: BSL-1.0
 *
 * The first calls of a collective on a fresh communicator, in plain MPI, so that any MPI library and
 * any tuner can run it: first_calls broadcast|all_reduce BYTES CALLS. Rank 0 prints one JSON array:
 * the seconds of each call, of its slowest rank, behind a barrier. Results are checked in the first
 * and in the last call. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char* why) {
  fprintf(stderr, "first_calls: %s\n", why);
  MPI_Abort(MPI_COMM_WORLD, 1);
  return 1;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 4) return fail("expected broadcast or all_reduce, bytes and calls");
  const int reduces = strcmp(argv[1], "all_reduce") == 0;
  const long count = atol(argv[2]) / (long)sizeof(int), calls = atol(argv[3]);
  if ((!reduces && strcmp(argv[1], "broadcast") != 0) || count < 1 || count > 1 << 28 ||
      calls < 1 || calls > 1000000)
    return fail("expected broadcast or all_reduce, bytes and calls");

  int *in = malloc((size_t)count * sizeof(int)), *out = malloc((size_t)count * sizeof(int));
  double* seconds = malloc((size_t)calls * sizeof(double));
  if (!in || !out || !seconds) return fail("no memory");

  /* Connections are not what is measured. */
  for (int peer = 0; peer < ranks; ++peer)
    MPI_Sendrecv(in, 0, MPI_INT, (rank + peer) % ranks, 0, out, 0, MPI_INT,
                 (rank - peer + ranks) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);

  for (long i = 0; i < calls; ++i) {
    const int checked = i == 0 || i == calls - 1;
    if (checked)
      for (long k = 0; k < count; ++k) {
        in[k] = (int)(k % 1000) + rank;
        out[k] = rank == 0 ? (int)(k % 1000) : -1;
      }
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    if (reduces)
      MPI_Allreduce(in, out, (int)count, MPI_INT, MPI_SUM, comm);
    else
      MPI_Bcast(out, (int)count, MPI_INT, 0, comm);
    seconds[i] = MPI_Wtime() - begin;
    for (long k = 0; checked && k < count; ++k) {
      const int own = (int)(k % 1000);
      if (out[k] != (reduces ? own * ranks + ranks * (ranks - 1) / 2 : own))
        return fail("a result is wrong");
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, seconds, (int)calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) {
    for (long i = 0; i < calls; ++i) printf("%c%.9f", i ? ',' : '[', seconds[i]);
    printf("]\n");
    fflush(stdout); /* field.py has what it wants, should MPI_Finalize not end */
  }
  MPI_Finalize();
  free(in);
  free(out);
  free(seconds);
  return 0;
}

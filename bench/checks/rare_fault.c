// SPDX-License-Identifier: BSL-1.0
//
// A program that knows nothing of railpass: all_reduces of 1,024 integers, in one of 1,000 of which
// shim.c plants a wrong element on rank 1. Rank 0 prints in which call the fault was met: the first
// planted call whose result is right nevertheless, and how many calls were checked so far.
//
//   rare_fault message|result CALLS SEED
#define _GNU_SOURCE
#include <mpi.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { count = 1024, one_of = 1000, first_planted = 50 };

static int in[count], out[count];

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, num_ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  int* const planted_in = dlsym(RTLD_DEFAULT, "planted_in");
  int* const planted_bytes = dlsym(RTLD_DEFAULT, "planted_bytes");
  const long* const altered = dlsym(RTLD_DEFAULT, "altered_elements");
  const long* const calls_of = dlsym(RTLD_DEFAULT, "calls_of");
  const long* const checks = dlsym(RTLD_DEFAULT, "sent_check_words");
  if (argc != 4 || !planted_in || num_ranks < 2) {
    fprintf(stderr, "expected message|result CALLS SEED, 2 ranks or more, and the shim\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int where = strcmp(argv[1], "message") == 0 ? 1 : 2;
  const long calls = atol(argv[2]);
  srand48(atol(argv[3]));
  *planted_bytes = sizeof in;
  long planted = 0, met_at = -1, call = 0;
  for (; call < calls && met_at < 0; ++call) {
    const int plants = drand48() * one_of < 1 && call >= first_planted;
    for (int i = 0; i < count; ++i) in[i] = rank + i + (int)call % 7;
    *planted_in = plants && rank == 1 ? where : 0;
    MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    *planted_in = 0;
    if (!plants) continue;
    int wrong = 0;
    for (int i = 0; i < count; ++i)
      if (out[i] != num_ranks * (num_ranks - 1) / 2 + num_ranks * (i + (int)call % 7)) wrong = 1;
    // Of all ranks, by messages that railpass does not see.
    long seen[2] = {wrong, *altered}, of_all[2];
    *planted_bytes = 0;
    PMPI_Allreduce(seen, of_all, 2, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    *planted_bytes = sizeof in;
    if (of_all[1] > planted && !of_all[0]) met_at = call;
    planted = of_all[1];
  }
  if (rank == 0)
    printf(
        "{\"calls\": %ld, \"faulty\": %ld, \"planted\": %ld, \"met_at\": %ld, \"checks\": %ld}\n",
        call, calls_of[where], planted, met_at, *checks);
  MPI_Finalize();
  return 0;
}

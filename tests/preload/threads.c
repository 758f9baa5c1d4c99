// SPDX-License-Identifier: BSL-1.0
//
// "threads LEVEL": a program that asks for a thread level; with MPI_THREAD_MULTIPLE two threads are
// in calls at once, each on a communicator of its own.
#include <mpi.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int wrong[2];

struct work {
  MPI_Comm comm;
  int number;
};

static void* calls(void* argument) {
  const struct work* const w = argument;
  int rank = 0, num_ranks = 1;
  MPI_Comm_rank(w->comm, &rank);
  MPI_Comm_size(w->comm, &num_ranks);
  for (int i = 0; i < 200; ++i) {
    int values[3] = {rank, i, w->number}, sums[3] = {0, 0, 0};
    MPI_Allreduce(values, sums, 3, MPI_INT, MPI_SUM, w->comm);
    MPI_Bcast(values, 3, MPI_INT, i % num_ranks, w->comm);
    MPI_Barrier(w->comm);
    wrong[w->number] += sums[0] != num_ranks * (num_ranks - 1) / 2 || sums[1] != num_ranks * i ||
                        sums[2] != num_ranks * w->number || values[0] != i % num_ranks;
  }
  return NULL;
}

int main(int argc, char** argv) {
  const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                        MPI_THREAD_MULTIPLE};
  const int wanted = levels[argc > 1 ? atoi(argv[1]) % 4 : 0];
  int given = MPI_THREAD_SINGLE, rank = 0;
  MPI_Init_thread(&argc, &argv, wanted, &given);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  struct work w[2] = {{MPI_COMM_NULL, 0}, {MPI_COMM_NULL, 1}};
  for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &w[i].comm);
  if (given == MPI_THREAD_MULTIPLE) {
    pthread_t other;
    if (pthread_create(&other, NULL, calls, &w[1]) != 0) MPI_Abort(MPI_COMM_WORLD, 2);
    calls(&w[0]);
    pthread_join(other, NULL);
  } else {
    calls(&w[0]);
    calls(&w[1]);
  }
  for (int i = 0; i < 2; ++i) MPI_Comm_free(&w[i].comm);
  if (rank == 0)
    printf("level %s: %d wrong\n", given >= wanted ? "given" : "not given", wrong[0] + wrong[1]);
  MPI_Finalize();
  return 0;
}

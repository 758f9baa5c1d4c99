// SPDX-License-Identifier: BSL-1.0
//
// A program whose threads, one after the other, have stacks of so many KiB: small_stacks KIB. Each
// makes some calls on one of four communicators, which begin to be tuned in one of them.
#include <mpi.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { threads = 120, calls = 3, most = 60000 };

static int rank, num_ranks, wrong;
static MPI_Comm comms[4];
static int in[most], out[most], all[8 * most / 8];

static void* work(void* argument) {
  const int first = *(const int*)argument;
  const MPI_Comm comm = comms[first / calls % 4];
  for (int i = first; i < first + calls; ++i) {
    const int n = i % 3 == 0 ? most : 10 + i % 50;
    for (int k = 0; k < n; ++k) in[k] = rank + k + i;
    MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, comm);
    for (int k = 0; k < n; ++k)
      wrong += out[k] != num_ranks * (k + i) + num_ranks * (num_ranks - 1) / 2;
    MPI_Bcast(in, n, MPI_INT, i % num_ranks, comm);
    wrong += in[n - 1] != i % num_ranks + n - 1 + i;
    MPI_Allgather(in, n / 8, MPI_INT, all, n / 8, MPI_INT, comm);
    wrong += n >= 8 && all[n / 8] != in[0];
  }
  return NULL;
}

int main(int argc, char** argv) {
  int given = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &given);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  for (int i = 0; i < 4; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  pthread_attr_t small;
  pthread_attr_init(&small);
  if (argc < 2 || pthread_attr_setstacksize(&small, 1024 * (size_t)atoi(argv[1])) != 0)
    MPI_Abort(MPI_COMM_WORLD, 2);
  for (int i = 0; i < threads; ++i) {
    pthread_t thread;
    int first = i * calls;
    if (pthread_create(&thread, &small, work, &first) != 0) MPI_Abort(MPI_COMM_WORLD, 3);
    pthread_join(thread, NULL);
  }
  int sum = 0;
  MPI_Reduce(&wrong, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  for (int i = 0; i < 4; ++i) MPI_Comm_free(&comms[i]);
  if (rank == 0) printf("%d wrong\n", sum);
  MPI_Finalize();
  return 0;
}

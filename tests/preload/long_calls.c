// SPDX-License-Identifier: BSL-1.0
//
// Long calls from the beginning on: long_calls WHAT CALLS [LOG]. Broadcasts and reductions are of
// 1.2 MB; all_to_alls are those of a Fourier transform in one dimension of ranks, on a
// communicator that MPI_Comm_split made of all of them. A broadcast that is short on its root
// alone, "unlike", is a mistake, which ends the program once LOG says that the others wait; so does
// a rank without railpass, "off".
#include "log_says.h"

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { long_count = 150000, block = 65536 };  // doubles

static int rank, size, wrong;
static double in[4 * block], out[4 * block];

static void broadcast(MPI_Comm comm, int call, int count, int as_bytes) {
  const int root = call % size;
  for (int i = 0; i < count; ++i) in[i] = rank == root ? call + i : -1;
  MPI_Bcast(in, as_bytes ? 8 * count : count, as_bytes ? MPI_BYTE : MPI_DOUBLE, root, comm);
  for (int i = 0; i < count; ++i) wrong += in[i] != call + i;
}

static void all_to_all(MPI_Comm comm, int call) {
  for (int i = 0; i < size * block; ++i) in[i] = call + i / block + size * rank;
  MPI_Alltoall(in, block, MPI_DOUBLE, out, block, MPI_DOUBLE, comm);
  for (int i = 0; i < size * block; ++i) wrong += out[i] != call + rank + size * (i / block);
}

static void all_gatherv(MPI_Comm comm, int call) {
  int counts[4], places[4];
  for (int r = 0; r < size; ++r) counts[r] = block, places[r] = r * block;
  for (int i = 0; i < block; ++i) in[i] = call + rank;
  MPI_Allgatherv(in, block, MPI_DOUBLE, out, counts, places, MPI_DOUBLE, comm);
  for (int i = 0; i < size * block; ++i) wrong += out[i] != call + i / block;
}

static void end_once(const char* log, const char* words) {
  wait_until_log_says(log, words);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void unlike(const char* log) {
  MPI_Bcast(in, rank == 0 ? 100 : long_count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  end_once(log, "waits for the others to agree");
}

int main(int argc, char** argv) {
  const char* const what = argv[1];
  int level;
  MPI_Init_thread(&argc, &argv,
                  strcmp(what, "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(what, "off") == 0) end_once(argv[3], "waits inside MPI_Init");
  MPI_Comm all = MPI_COMM_NULL, part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &all);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);
  for (int call = 0; call < atoi(argv[2]); ++call) {
    if (strcmp(what, "broadcast") == 0 || strcmp(what, "threads") == 0)
      broadcast(MPI_COMM_WORLD, call, long_count, 0);
    // Each rank has a type of its own for the same bytes.
    if (strcmp(what, "types") == 0) broadcast(MPI_COMM_WORLD, call, long_count, rank % 2);
    if (strcmp(what, "all_to_all") == 0) all_to_all(all, call);
    if (strcmp(what, "short_first") == 0)
      broadcast(MPI_COMM_WORLD, call, call < 3 ? 1 : long_count, 0);
    if (strcmp(what, "unlike") == 0) unlike(argv[3]);
    if (strcmp(what, "all_gatherv") == 0) all_gatherv(MPI_COMM_WORLD, call);
    if (strcmp(what, "part") == 0) {
      int sum = 0, members = 0;
      MPI_Comm_size(part, &members);
      for (int i = 0; i < long_count; ++i) in[i] = call;
      MPI_Allreduce(in, out, long_count, MPI_DOUBLE, MPI_SUM, part);
      for (int i = 0; i < long_count; ++i) sum += out[i] != (double)members * call;
      wrong += sum;
    }
  }
  int all_wrong = 0;
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d wrong\n", all_wrong);
  MPI_Comm_free(&part);
  MPI_Comm_free(&all);
  MPI_Finalize();
  return 0;
}

// SPDX-License-Identifier: BSL-1.0
//
// A C program that knows nothing of railpass: every blocking collective, often enough to be tuned,
// with sizes and roots that change. Rank 0 prints what all ranks received, so two runs compare.
#include <mpi.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_ranks = 8, most_count = 2000, rounds = 15 };

static int rank, num_ranks;
static uint64_t hash = 14695981039346656037u;

static void add(const int* values, int count) {
  for (int i = 0; i < count; ++i) hash = (hash ^ (uint64_t)(uint32_t)values[i]) * 1099511628211u;
}

static void show(const char* name) {
  uint64_t all[most_ranks];
  if (rank > 0) {
    MPI_Send(&hash, 1, MPI_UINT64_T, 0, 7, MPI_COMM_WORLD);
    return;
  }
  all[0] = hash;
  for (int r = 1; r < num_ranks; ++r)
    MPI_Recv(&all[r], 1, MPI_UINT64_T, r, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  printf("%-22s", name);
  for (int r = 0; r < num_ranks; ++r) printf(" %016llx", (unsigned long long)all[r]);
  printf("\n");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  if (num_ranks > most_ranks) MPI_Abort(MPI_COMM_WORLD, 2);
  const int n = most_ranks * most_count;
  int* const in = malloc((size_t)n * sizeof *in);
  int* const out = malloc((size_t)n * sizeof *out);
  // Rank r's block, in all v-forms, has counts[r] elements.
  int counts[most_ranks], places[most_ranks], bytes[most_ranks];
  int same[most_ranks], same_places[most_ranks], same_bytes[most_ranks];
  MPI_Datatype types[most_ranks];
  MPI_Comm const world = MPI_COMM_WORLD;

#define EACH(call, received)                                                  \
  for (int round = 0; round < rounds; ++round) {                              \
    const int count = round % 3 == 0 ? 1 : round % 3 == 1 ? 100 : most_count; \
    const int root = round % num_ranks;                                       \
    for (int i = 0; i < n; ++i) in[i] = (i * 7 + rank * 13 + round) % 1000;   \
    for (int i = 0; i < n; ++i) out[i] = -1;                                  \
    for (int r = 0, sum = 0; r < num_ranks; sum += counts[r++]) {             \
      counts[r] = 1 + count * (r + 1) / num_ranks / 2;                        \
      places[r] = sum;                                                        \
      bytes[r] = (int)sizeof(int) * sum;                                      \
      types[r] = MPI_INT;                                                     \
    }                                                                         \
    const int mine = counts[rank];                                            \
    for (int r = 0; r < num_ranks; ++r) {                                     \
      same[r] = mine;                                                         \
      same_places[r] = r * mine;                                              \
      same_bytes[r] = (int)sizeof(int) * same_places[r];                      \
    }                                                                         \
    (void)root, (void)same, (void)same_bytes;                                 \
    call;                                                                     \
    add(out, received);                                                       \
  }

  EACH(memcpy(out, in, sizeof(int) * (size_t)count); MPI_Bcast(out, count, MPI_INT, root, world), n)
  show("Bcast");
  EACH(MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, world), n)
  show("Allreduce");
  EACH(memcpy(out, in, sizeof(int) * (size_t)count);
       MPI_Allreduce(MPI_IN_PLACE, out, count, MPI_INT, MPI_MAX, world), n)
  show("Allreduce in place");
  EACH(MPI_Reduce(in, out, count, MPI_INT, MPI_MIN, root, world), rank == root ? n : 0)
  show("Reduce");
  EACH(MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, world), n)
  show("Reduce_scatter");
  EACH(MPI_Reduce_scatter_block(in, out, count, MPI_INT, MPI_SUM, world), n)
  show("Reduce_scatter_block");
  EACH(MPI_Gather(in, count, MPI_INT, out, count, MPI_INT, root, world), n)
  show("Gather");
  EACH(MPI_Gatherv(in, mine, MPI_INT, out, counts, places, MPI_INT, root, world), n)
  show("Gatherv");
  EACH(MPI_Scatter(in, count, MPI_INT, out, count, MPI_INT, root, world), n)
  show("Scatter");
  EACH(MPI_Scatterv(in, counts, places, MPI_INT, out, mine, MPI_INT, root, world), n)
  show("Scatterv");
  EACH(MPI_Allgather(in, count, MPI_INT, out, count, MPI_INT, world), n)
  show("Allgather");
  EACH(MPI_Allgatherv(in, mine, MPI_INT, out, counts, places, MPI_INT, world), n)
  show("Allgatherv");
  EACH(MPI_Alltoall(in, count, MPI_INT, out, count, MPI_INT, world), n)
  show("Alltoall");
  EACH(MPI_Alltoallv(in, counts, places, MPI_INT, out, same, same_places, MPI_INT, world), n)
  show("Alltoallv");
  EACH(MPI_Alltoallw(in, counts, bytes, types, out, same, same_bytes, types, world), n)
  show("Alltoallw");
  EACH(MPI_Scan(in, out, count, MPI_INT, MPI_SUM, world), n)
  show("Scan");
  EACH(MPI_Exscan(in, out, count, MPI_INT, MPI_SUM, world), rank > 0 ? n : 0)
  show("Exscan");
  for (int round = 0; round < rounds; ++round) MPI_Barrier(world);
  show("Barrier");
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}

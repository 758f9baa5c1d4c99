// SPDX-License-Identifier: BSL-1.0
//
// A C program that knows nothing of railpass: every blocking collective, often enough to be tuned,
// with sizes and roots that change. Rank 0 prints what all ranks received, so two runs compare.
// Called as "all_collectives DRIVER one|all|idle", one or all ranks keep their buffers in the
// memory of a GPU, of which DRIVER is the (fake) driver; with idle, rank 1 loads the driver and no
// more.
#include <mpi.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Compiled with LARGE, the forms with large counts of MPI 4.0.
#ifdef LARGE
typedef MPI_Count number;
typedef MPI_Aint place;
#define MPI_Bcast MPI_Bcast_c
#define MPI_Allreduce MPI_Allreduce_c
#define MPI_Reduce MPI_Reduce_c
#define MPI_Reduce_scatter MPI_Reduce_scatter_c
#define MPI_Reduce_scatter_block MPI_Reduce_scatter_block_c
#define MPI_Gather MPI_Gather_c
#define MPI_Gatherv MPI_Gatherv_c
#define MPI_Scatter MPI_Scatter_c
#define MPI_Scatterv MPI_Scatterv_c
#define MPI_Allgather MPI_Allgather_c
#define MPI_Allgatherv MPI_Allgatherv_c
#define MPI_Alltoall MPI_Alltoall_c
#define MPI_Alltoallv MPI_Alltoallv_c
#define MPI_Alltoallw MPI_Alltoallw_c
#define MPI_Scan MPI_Scan_c
#define MPI_Exscan MPI_Exscan_c
#else
typedef int number;
typedef int place;
#endif

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

// Of the driver, if there is one.
static void* (*allocate)(size_t);
static void (*copy)(void*, const void*, size_t);
static int (*touches)(void);

static void load_driver(const char* path) {
  void* const driver = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!driver) {
    fprintf(stderr, "%s\n", dlerror());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  *(void**)&allocate = dlsym(driver, "fake_allocate");
  *(void**)&copy = dlsym(driver, "fake_copy");
  *(void**)&touches = dlsym(driver, "fake_touches");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  if (num_ranks > most_ranks) MPI_Abort(MPI_COMM_WORLD, 2);
  const int n = most_ranks * most_count;
  const size_t all_bytes = (size_t)n * sizeof(int);
  int* const in = malloc(all_bytes);
  int* const out = malloc(all_bytes);
  const char* const who = argc > 2 ? argv[2] : "";
  if (strcmp(who, "idle") == 0 && rank == 1) load_driver(argv[1]);
  // The communicator is tuned before there is a driver.
  for (int i = 0; i < 10; ++i) MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(who, "all") == 0 || (strcmp(who, "one") == 0 && rank == 1)) load_driver(argv[1]);
  const int is_there = allocate && strcmp(who, "idle") != 0;
  int* const send = is_there ? allocate(all_bytes) : in;
  int* const receive = is_there ? allocate(all_bytes) : out;
  // Rank r's block, in all v-forms, has counts[r] elements.
  number counts[most_ranks], same[most_ranks];
  place places[most_ranks], bytes[most_ranks];
  place same_places[most_ranks], same_bytes[most_ranks];
  MPI_Datatype types[most_ranks];
  MPI_Comm const world = MPI_COMM_WORLD;
  MPI_Datatype with_holes = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &with_holes);
  MPI_Type_commit(&with_holes);

#define EACH(before, call, received)                                          \
  for (int round = 0; round < rounds; ++round) {                              \
    const int count = round % 3 == 0 ? 1 : round % 3 == 1 ? 100 : most_count; \
    const int root = round % num_ranks;                                       \
    for (int i = 0; i < n; ++i) in[i] = (i * 7 + rank * 13 + round) % 1000;   \
    for (int i = 0; i < n; ++i) out[i] = -1;                                  \
    for (int r = 0, sum = 0; r < num_ranks; sum += (int)counts[r++]) {        \
      counts[r] = 1 + count * (r + 1) / num_ranks / 2;                        \
      places[r] = sum;                                                        \
      bytes[r] = (int)sizeof(int) * sum;                                      \
      types[r] = MPI_INT;                                                     \
    }                                                                         \
    const number mine = counts[rank];                                         \
    for (int r = 0; r < num_ranks; ++r) {                                     \
      same[r] = mine;                                                         \
      same_places[r] = (place)(r * mine);                                     \
      same_bytes[r] = (place)sizeof(int) * same_places[r];                    \
    }                                                                         \
    (void)root, (void)same, (void)same_bytes;                                 \
    before;                                                                   \
    if (is_there) {                                                           \
      copy(send, in, all_bytes);                                              \
      copy(receive, out, all_bytes);                                          \
    }                                                                         \
    call;                                                                     \
    if (is_there) copy(out, receive, all_bytes);                              \
    add(out, received);                                                       \
  }

  EACH(memcpy(out, in, sizeof(int) * (size_t)count),
       MPI_Bcast(receive, count, MPI_INT, root, world), n)
  show("Bcast");
  EACH(memcpy(out, in, sizeof(int) * (size_t)count),
       MPI_Bcast(receive, count, with_holes, root, world), n)
  show("Bcast with holes");
  EACH(, MPI_Allreduce(send, receive, count, MPI_INT, MPI_SUM, world), n)
  show("Allreduce");
  EACH(memcpy(out, in, sizeof(int) * (size_t)count),
       MPI_Allreduce(MPI_IN_PLACE, receive, count, MPI_INT, MPI_MAX, world), n)
  show("Allreduce in place");
  EACH(, MPI_Reduce(send, receive, count, MPI_INT, MPI_MIN, root, world), rank == root ? n : 0)
  show("Reduce");
  EACH(, MPI_Reduce_scatter(send, receive, counts, MPI_INT, MPI_SUM, world), n)
  show("Reduce_scatter");
  EACH(, MPI_Reduce_scatter_block(send, receive, count, MPI_INT, MPI_SUM, world), n)
  show("Reduce_scatter_block");
  EACH(, MPI_Gather(send, count, MPI_INT, receive, count, MPI_INT, root, world), n)
  show("Gather");
  EACH(, MPI_Gatherv(send, mine, MPI_INT, receive, counts, places, MPI_INT, root, world), n)
  show("Gatherv");
  EACH(, MPI_Scatter(send, count, MPI_INT, receive, count, MPI_INT, root, world), n)
  show("Scatter");
  EACH(, MPI_Scatterv(send, counts, places, MPI_INT, receive, mine, MPI_INT, root, world), n)
  show("Scatterv");
  EACH(, MPI_Allgather(send, count, MPI_INT, receive, count, MPI_INT, world), n)
  show("Allgather");
  EACH(, MPI_Allgatherv(send, mine, MPI_INT, receive, counts, places, MPI_INT, world), n)
  show("Allgatherv");
  EACH(, MPI_Alltoall(send, count, MPI_INT, receive, count, MPI_INT, world), n)
  show("Alltoall");
  EACH(, MPI_Alltoallv(send, counts, places, MPI_INT, receive, same, same_places, MPI_INT, world),
       n)
  show("Alltoallv");
  EACH(, MPI_Alltoallw(send, counts, bytes, types, receive, same, same_bytes, types, world), n)
  show("Alltoallw");
  EACH(, MPI_Scan(send, receive, count, MPI_INT, MPI_SUM, world), n)
  show("Scan");
  EACH(, MPI_Exscan(send, receive, count, MPI_INT, MPI_SUM, world), rank > 0 ? n : 0)
  show("Exscan");
  for (int round = 0; round < rounds; ++round) MPI_Barrier(world);
  show("Barrier");
  if (touches) fprintf(stderr, "%d touches\n", touches());
  MPI_Type_free(&with_holes);
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}

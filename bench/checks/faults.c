// SPDX-License-Identifier: BSL-1.0
//
// Calls that meet faults of MPI libraries, 40 times each, but all_gatherv_large twice. Rank 0
// prints how many results were wrong on any rank, and how many calls failed.
//
//   faults NAME  (see main)
#include <mpi.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { n = 64, many = 12288, most_ranks = 16 };

static int rank, num_ranks, round_;
static MPI_Comm ring;
static MPI_Datatype triple;

// Each returns 1 if this rank's result is wrong, 2 if the call failed.

static int unsigned_extreme(MPI_Op operation) {
  unsigned long in[n], out[n];
  const unsigned long large = 1ul << 63;
  for (int i = 0; i < n; ++i) in[i] = rank == 0 ? large + 7 : (unsigned long)rank;
  if (MPI_Allreduce(in, out, n, MPI_UNSIGNED_LONG, operation, MPI_COMM_WORLD)) return 2;
  return out[n - 1] != (operation == MPI_MIN ? 1ul : large + 7);
}
static int unsigned_min(void) { return unsigned_extreme(MPI_MIN); }
static int unsigned_max(void) { return unsigned_extreme(MPI_MAX); }

static int short_sum(void) {
  uint16_t in[n], out[n];
  for (int i = 0; i < n; ++i) in[i] = 40000;
  if (MPI_Allreduce(in, out, n, MPI_UINT16_T, MPI_SUM, MPI_COMM_WORLD)) return 2;
  return out[0] != (uint16_t)(40000 * num_ranks);
}

// Ranks describe `many` integers as integers or as triples of integers: Open MPI cuts a gather into
// segments of its number of whole elements in 1 KiB.
static MPI_Datatype own_type(void) { return rank % 2 ? triple : MPI_INT; }
static int own_count(void) { return rank % 2 ? many / 3 : many; }

static int gather_types(void) {
  static int in[many], out[most_ranks * many];
  for (int i = 0; i < many; ++i) in[i] = rank + round_;
  memset(out, -1, sizeof out);
  if (MPI_Gather(in, own_count(), own_type(), out, many, MPI_INT, 0, MPI_COMM_WORLD)) return 2;
  int wrong = 0;
  for (int r = 0; rank == 0 && r < num_ranks; ++r)
    if (out[(r + 1) * many - 1] != r + round_) wrong = 1;
  return wrong;
}

// Some libraries also write behind the result: triples where there are integers.
static int all_gather_types(void) {
  static int in[many], out[3 * most_ranks * many];
  for (int i = 0; i < many; ++i) in[i] = rank + round_;
  memset(out, -1, sizeof out);
  if (MPI_Allgather(in, many, MPI_INT, out, own_count(), own_type(), MPI_COMM_WORLD)) return 2;
  int wrong = 0;
  for (int r = 0; r < num_ranks; ++r)
    if (out[(r + 1) * many - 1] != r + round_) wrong = 1;
  return wrong;
}

static int all_gatherv_types(void) {
  static int in[many], out[most_ranks * many];
  int counts[most_ranks], places[most_ranks];
  for (int i = 0; i < many; ++i) in[i] = rank + round_;
  for (int r = 0; r < num_ranks; ++r) {
    counts[r] = own_count();
    places[r] = r * own_count();
  }
  memset(out, -1, sizeof out);
  if (MPI_Allgatherv(in, many, MPI_INT, out, counts, places, own_type(), MPI_COMM_WORLD)) return 2;
  int wrong = 0;
  for (int r = 0; r < num_ranks; ++r)
    if (out[(r + 1) * many - 1] != r + round_) wrong = 1;
  return wrong;
}

// The first rank's block has more bytes than 32 bits count; the other ranks have a byte each.
static int all_gatherv_large(void) {
#if MPI_VERSION < 4
  return 2;
#else
  const MPI_Count large = ((MPI_Count)1 << 32) + 64;
  MPI_Count counts[most_ranks];
  MPI_Aint places[most_ranks];
  for (int r = 0; r < num_ranks; ++r) {
    counts[r] = r == 0 ? large : 1;
    places[r] = r == 0 ? 0 : large + r - 1;
  }
  char* const all = calloc((size_t)large + most_ranks, 1);
  if (!all) MPI_Abort(MPI_COMM_WORLD, 3);
  memset(all + places[rank], rank + 1, (size_t)counts[rank]);
  const int code =
      MPI_Allgatherv_c(MPI_IN_PLACE, 0, MPI_BYTE, all, counts, places, MPI_BYTE, MPI_COMM_WORLD);
  int wrong = 0;
  for (int r = 0; r < num_ranks; ++r)
    if (all[places[r] + counts[r] - 1] != r + 1) wrong = 1;
  free(all);
  return code ? 2 : wrong;
#endif
}

static int reduce_in_place(void) {
  static int in[8 * n];
  for (int i = 0; i < 8 * n; ++i) in[i] = rank + round_;
  if (MPI_Reduce(rank == 0 ? MPI_IN_PLACE : in, in, 8 * n, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD))
    return 2;
  return rank == 0 && in[0] != num_ranks * (num_ranks - 1) / 2 + num_ranks * round_;
}

// On a periodic ring of 2 ranks both neighbours are the same rank.
static int neighbors(void) {
  int in[2] = {10 * rank, 10 * rank + 1}, out[2] = {-1, -1};
  const int counts[2] = {1, 1}, places[2] = {0, 1};
  if (MPI_Neighbor_alltoallv(in, counts, places, MPI_INT, out, counts, places, MPI_INT, ring))
    return 2;
  const int before = (rank + num_ranks - 1) % num_ranks, after = (rank + 1) % num_ranks;
  return out[0] != 10 * before + 1 || out[1] != 10 * after;
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    int (*run)(void);
    int calls;
  } all[] = {{"unsigned_min", unsigned_min, 40},
             {"unsigned_max", unsigned_max, 40},
             {"short_sum", short_sum, 40},
             {"gather_types", gather_types, 40},
             {"all_gather_types", all_gather_types, 40},
             {"all_gatherv_types", all_gatherv_types, 40},
             {"all_gatherv_large", all_gatherv_large, 2},
             {"reduce_in_place", reduce_in_place, 40},
             {"neighbors", neighbors, 40}};
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  MPI_Type_contiguous(3, MPI_INT, &triple);
  MPI_Type_commit(&triple);
  const int periodic = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &num_ranks, &periodic, 0, &ring);
  int (*run)(void) = NULL, calls = 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    if (argc == 2 && strcmp(argv[1], all[i].name) == 0) {
      run = all[i].run;
      calls = all[i].calls;
    }
  if (!run || num_ranks > most_ranks) MPI_Abort(MPI_COMM_WORLD, 2);
  int found[2] = {0, 0};
  for (round_ = 0; round_ < calls; ++round_) {
    const int how = run();
    if (how > 0) ++found[how - 1];
  }
  int most[2];
  MPI_Reduce(found, most, 2, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d wrong, %d failed\n", most[0], most[1]);
  MPI_Finalize();
  return 0;
}

// SPDX-License-Identifier: BSL-1.0
//
// A program that knows nothing of railpass, for streams.py: streams of short calls, each kind on a
// fresh communicator. Rank 0 prints per kind: its name, bytes per block, and the seconds of the
// first hundredth of the calls, of the rest of the first tenth, and of the others, between
// barriers.
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

enum { longest = 1024 };
static MPI_Comm comm;
static int bytes;
static char *one, *all, *others; /* a block, a block per rank */

static void broadcast(void) { MPI_Bcast(one, bytes, MPI_CHAR, 0, comm); }
static void reduce(void) { MPI_Reduce(one, all, bytes / 4, MPI_INT, MPI_SUM, 0, comm); }
static void gather(void) { MPI_Gather(one, bytes, MPI_CHAR, all, bytes, MPI_CHAR, 0, comm); }
static void scatter(void) { MPI_Scatter(all, bytes, MPI_CHAR, one, bytes, MPI_CHAR, 0, comm); }
static void scan(void) { MPI_Scan(one, all, bytes / 4, MPI_INT, MPI_SUM, comm); }
static void exscan(void) { MPI_Exscan(one, all, bytes / 4, MPI_INT, MPI_SUM, comm); }
static void all_reduce(void) { MPI_Allreduce(one, all, bytes / 4, MPI_INT, MPI_SUM, comm); }
static void all_gather(void) { MPI_Allgather(one, bytes, MPI_CHAR, all, bytes, MPI_CHAR, comm); }
static void all_to_all(void) { MPI_Alltoall(all, bytes, MPI_CHAR, others, bytes, MPI_CHAR, comm); }
static void barrier(void) { MPI_Barrier(comm); }

static const struct {
  const char* name;
  void (*call)(void);
  int bytes;
} kinds[] = {
    {"broadcast", broadcast, 8},
    {"broadcast", broadcast, longest},
    {"reduce", reduce, 8},
    {"reduce", reduce, longest},
    {"gather", gather, 8},
    {"gather", gather, longest},
    {"scatter", scatter, 8},
    {"scatter", scatter, longest},
    {"scan", scan, 8},
    {"scan", scan, longest},
    {"exscan", exscan, 8},
    {"exscan", exscan, longest},
    {"all_reduce", all_reduce, 8},
    {"all_reduce", all_reduce, longest},
    {"all_gather", all_gather, 8},
    {"all_gather", all_gather, longest},
    {"all_to_all", all_to_all, 8},
    {"all_to_all", all_to_all, longest},
    {"barrier", barrier, 0},
};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int calls = argc > 1 ? atoi(argv[1]) : 0;
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  one = calloc(1, longest);
  all = calloc((size_t)ranks, longest);
  others = calloc((size_t)ranks, longest);
  if (calls < 1000 || !one || !all || !others) {
    fprintf(stderr, "usage: streams CALLS, at least 1000\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  /* The barriers between the parts are calls like others: what begins with them has begun. */
  for (int i = 0; i < 20; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    for (const double begin_s = MPI_Wtime(); MPI_Wtime() - begin_s < 1e-3;) continue;
  }
  const int ends[] = {calls / 100, calls / 10, calls};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    bytes = kinds[k].bytes;
    if (rank == 0) printf("%s %d", kinds[k].name, bytes);
    for (int part = 0, i = 0; part < 3; ++part) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin_s = MPI_Wtime();
      for (; i < ends[part]; ++i) kinds[k].call();
      MPI_Barrier(MPI_COMM_WORLD);
      if (rank == 0) printf(" %.9f", MPI_Wtime() - begin_s);
    }
    if (rank == 0) printf("\n");
    MPI_Comm_free(&comm);
  }
  MPI_Finalize();
  free(one);
  free(all);
  free(others);
  return 0;
}

/* SPDX-License-Identifier: BSL-1.0
 *
 * How long collectives take on the ranks of one node, in plain MPI, so that any MPI library and any
 * tuner can run it: one_node LEARN_MS MEASURE_MS COLLECTIVE:BYTES... One JSON line for each cell:
 * quantiles of the seconds of a call, of its slowest rank. The ranks begin a call together, behind
 * a barrier of this program's own, so that libraries are not told apart by their barriers. Bytes
 * are of the whole message: of all blocks together where ranks have such. The first LEARN_MS of a
 * cell are for whoever tunes, and results are checked before and after each cell. */
#include <mpi.h>

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CALLS = 16 * 1250, PAGE = 4096 };
static const char* const NAMES[] = {"broadcast", "reduce",     "all_reduce", "gather",
                                    "scatter",   "all_gather", "all_to_all", "barrier"};
enum {
  BROADCAST,
  REDUCE,
  ALL_REDUCE,
  GATHER,
  SCATTER,
  ALL_GATHER,
  ALL_TO_ALL,
  BARRIER,
  COLLECTIVES
};

static int rank, ranks;
static struct line { _Alignas(64) atomic_long arrived; } * lines;
static long turn;

static int fail(const char* why) {
  fprintf(stderr, "one_node: %s\n", why);
  MPI_Abort(MPI_COMM_WORLD, 1);
  return 1;
}

/* Each rank has a line that it alone writes; rank 0 looks at all of them and lets all go on. */
static void wait_for(struct line* line) {
  for (long polls = 0; atomic_load_explicit(&line->arrived, memory_order_acquire) < turn; ++polls)
    if (polls > 10000) sched_yield();
}
static void begin_together(void) {
  ++turn;
  if (rank == 0) {
    for (int r = 1; r < ranks; ++r) wait_for(&lines[r]);
    atomic_store_explicit(&lines[0].arrived, turn, memory_order_release);
  } else {
    atomic_store_explicit(&lines[rank].arrived, turn, memory_order_release);
    wait_for(&lines[0]);
  }
}

static void call(int what, int* in, int* out, int count, MPI_Comm comm) {
  const int each = count / ranks;
  switch (what) {
    case BROADCAST:
      MPI_Bcast(out, count, MPI_INT, 0, comm);
      break;
    case REDUCE:
      MPI_Reduce(in, out, count, MPI_INT, MPI_SUM, 0, comm);
      break;
    case ALL_REDUCE:
      MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, comm);
      break;
    case GATHER:
      MPI_Gather(in, each, MPI_INT, out, each, MPI_INT, 0, comm);
      break;
    case SCATTER:
      MPI_Scatter(in, each, MPI_INT, out, each, MPI_INT, 0, comm);
      break;
    case ALL_GATHER:
      MPI_Allgather(in, each, MPI_INT, out, each, MPI_INT, comm);
      break;
    case ALL_TO_ALL:
      MPI_Alltoall(in, each, MPI_INT, out, each, MPI_INT, comm);
      break;
    default:
      MPI_Barrier(comm);
  }
}

/* What element k of the result is where the input of rank r is r + k mod 1000; -1: nothing. */
static int expected(int what, int k, int each) {
  switch (what) {
    case BROADCAST:
      return k % 1000;
    case REDUCE:
      if (rank != 0) return -1; /* fall through */
    case ALL_REDUCE:
      return k % 1000 * ranks + ranks * (ranks - 1) / 2;
    case GATHER:
      if (rank != 0) return -1; /* fall through */
    case ALL_GATHER:
      return k / each + k % each % 1000;
    case SCATTER:
      return k < each ? (rank * each + k) % 1000 : -1;
    case ALL_TO_ALL:
      return k / each + (rank * each + k % each) % 1000;
    default:
      return -1;
  }
}

static void check(int what, int* in, int* out, int count, MPI_Comm comm) {
  for (int k = 0; k < count; ++k) {
    in[k] = rank + k % 1000;
    out[k] = what == BROADCAST && rank == 0 ? k % 1000 : -1;
  }
  call(what, in, out, count, comm);
  for (int k = 0; k < count; ++k)
    if (out[k] != expected(what, k, count / ranks)) fail("a result is wrong");
}

/* Seconds of the last calls of this rank, and how many they are, when rank 0 says that it is
 * enough: it does so after 16 calls each, behind one that counts. */
static int measure(int what, int* in, int* out, int count, MPI_Comm comm, double* seconds,
                   double for_s) {
  const double started = MPI_Wtime();
  long calls = 0;
  int goes_on = 1;
  while (goes_on) {
    for (int i = 0; i < 16; ++i) {
      begin_together();
      const double begin = MPI_Wtime();
      call(what, in, out, count, comm);
      seconds[calls++ % MOST_CALLS] = MPI_Wtime() - begin;
    }
    if (rank == 0) atomic_store(&lines[ranks].arrived, MPI_Wtime() - started < for_s);
    begin_together();
    goes_on = (int)atomic_load(&lines[ranks].arrived);
    begin_together();
  }
  return calls < MOST_CALLS ? (int)calls : MOST_CALLS;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static int cell_of(const char* text, int* what, long* bytes) {
  const char* colon = strchr(text, ':');
  for (*what = 0; colon && *what < COLLECTIVES; ++*what)
    if (strlen(NAMES[*what]) == (size_t)(colon - text) &&
        strncmp(text, NAMES[*what], (size_t)(colon - text)) == 0) {
      char* end;
      *bytes = strtol(colon + 1, &end, 10);
      return *end == 0 && *bytes >= 0 && *bytes <= 1L << 30;
    }
  return 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 4 || atof(argv[1]) < 0 || atof(argv[2]) <= 0)
    return fail("expected LEARN_MS MEASURE_MS COLLECTIVE:BYTES...");
  MPI_Win window;
  void* memory;
  MPI_Aint bytes_there;
  int unit;
  if (MPI_Win_allocate_shared(rank == 0 ? (ranks + 2) * (MPI_Aint)sizeof(struct line) : 0, 1,
                              MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window) != MPI_SUCCESS)
    return fail("no memory that all ranks share: are they on one node?");
  MPI_Win_shared_query(window, 0, &bytes_there, &unit, &memory);
  lines = (struct line*)(((size_t)memory + 63) / 64 * 64);
  if (rank == 0) memset(lines, 0, (size_t)(ranks + 1) * sizeof(struct line));
  MPI_Barrier(MPI_COMM_WORLD);

  double* seconds = malloc(MOST_CALLS * sizeof(double));
  if (!seconds) return fail("no memory");
  for (int i = 3; i < argc; ++i) {
    int what;
    long bytes;
    if (!cell_of(argv[i], &what, &bytes)) return fail("expected cells such as all_reduce:1024");
    const int blocks = what >= GATHER && what <= ALL_TO_ALL;
    int count = (int)((bytes + (long)sizeof(int) - 1) / (long)sizeof(int));
    if (blocks) count = (count + ranks - 1) / ranks * ranks;
    /* Where a buffer begins must not depend on what else was allocated: it may double a time. */
    int* in = aligned_alloc(PAGE, (size_t)count * sizeof(int) / PAGE * PAGE + PAGE);
    int* out = aligned_alloc(PAGE, (size_t)count * sizeof(int) / PAGE * PAGE + PAGE);
    if (!in || !out) return fail("no memory");
    check(what, in, out, count, MPI_COMM_WORLD);
    measure(what, in, out, count, MPI_COMM_WORLD, seconds, atof(argv[1]) / 1e3);
    const int calls = measure(what, in, out, count, MPI_COMM_WORLD, seconds, atof(argv[2]) / 1e3);
    check(what, in, out, count, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, seconds, calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) {
      qsort(seconds, (size_t)calls, sizeof(double), ascending);
      printf(
          "{\"collective\": \"%s\", \"bytes\": %ld, \"ranks\": %d, \"calls\": %d, \"median_s\": "
          "%.9g, "
          "\"first_quartile_s\": %.9g, \"third_quartile_s\": %.9g}\n",
          NAMES[what], bytes, ranks, calls, seconds[calls / 2], seconds[calls / 4],
          seconds[calls * 3 / 4]);
      fflush(stdout);
    }
    free(in);
    free(out);
  }
  free(seconds);
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}

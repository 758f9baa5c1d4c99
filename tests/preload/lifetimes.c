// SPDX-License-Identifier: BSL-1.0
//
//     lifetimes MODE
//
// Programs that end in unusual ways, free communicators in unusual ways, or make mistakes that MPI
// survives. Rank 0 prints how many results were wrong, at the very end.
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, num_ranks, wrong;
static char large[70000];

// Collectives with known results on a communicator.
static void communicate(MPI_Comm comm, int calls) {
  int size = 0, me = 0;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &me);
  for (int i = 0; i < calls; ++i) {
    int const one = 1;
    int sum = 0;
    wrong += MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS;
    wrong += sum != size;
    memset(large, me == i % size ? i : -1, 16);
    wrong += MPI_Bcast(large, sizeof large, MPI_BYTE, i % size, comm) != MPI_SUCCESS;
    wrong += large[7] != (char)i;
  }
}

// Built for the standard ABI, the program learns it when it runs.
static int on_mpich(void) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  return strncmp(version, "MPICH", 5) == 0;
}

static void report(void) {
  int finalized = 0, all = wrong;
  MPI_Finalized(&finalized);
  if (!finalized) MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d wrong\n", all);
}

static void end_in_atexit(void) {
  communicate(MPI_COMM_WORLD, 3);
  report();
  MPI_Finalize();
}

// Stays unused until the delete callback of another communicator. In that callback, MPI libraries
// give this communicator the memory of attributes that are being deleted.
static MPI_Comm unused = MPI_COMM_NULL;

static int last_calls(MPI_Comm comm, int key, void* value, void* extra) {
  (void)key, (void)value, (void)extra;
  if (unused != MPI_COMM_NULL) communicate(unused, 10);
  communicate(comm == MPI_COMM_SELF ? MPI_COMM_WORLD : comm, 5);
  return MPI_SUCCESS;
}

// A library that does its last work when the attributes of MPI_COMM_SELF are deleted. On one rank
// this happens before the first collective, on the other ranks after it.
static void end_in_callback(void) {
  MPI_Comm some = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank > 0 ? 0 : MPI_UNDEFINED, 0, &some);
  if (rank > 0) communicate(some, 1);
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_calls, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  communicate(MPI_COMM_WORLD, 40);
}

static void free_with_callbacks(void) {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_calls, &key, NULL);
  for (int generation = 0; generation < 26; ++generation) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, generation % 2 ? rank / 2 : 0, 0, &comm);
    // Before or after railpass' own attribute; differs from rank to rank.
    if (generation % 3 && rank % 2) MPI_Comm_set_attr(comm, key, NULL);
    communicate(comm, generation % 13);
    if (generation % 3 && rank % 2 == 0) MPI_Comm_set_attr(comm, key, NULL);
    if (generation % 4 == 3) MPI_Comm_split(MPI_COMM_WORLD, rank / 2, 0, &unused);
    MPI_Comm_free(&comm);
    if (unused != MPI_COMM_NULL) MPI_Comm_free(&unused);
  }
  MPI_Comm_free_keyval(&key);
}

// Rank 0 frees its communicators before it sends what the other ranks wait for.
static void free_first(void) {
  enum { some = 6 };
  for (int round = 0; round < 6; ++round) {
    MPI_Comm comms[some];
    int word = 0;
    for (int k = 0; k < some; ++k) MPI_Comm_dup(MPI_COMM_WORLD, &comms[k]);
    for (int i = 0; i < 8 + 2 * round; ++i)
      for (int k = 0; k < some; ++k) communicate(comms[k], 1);
    if (rank != 0) MPI_Recv(&word, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int k = 0; k < some; ++k) MPI_Comm_free(&comms[round % 2 && rank % 2 ? some - 1 - k : k]);
    for (int r = 1; rank == 0 && r < num_ranks; ++r)
      MPI_Send(&word, 1, MPI_INT, r, 7, MPI_COMM_WORLD);
  }
}

static void with_others_under_way(void) {
  for (int round = 0; round < 6; ++round) {
    MPI_Comm comm = MPI_COMM_NULL, copy = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    int const one = 1;
    int sum = 0, message = -1;
    MPI_Request requests[3], receive;
    MPI_Irecv(&message, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &receive);
    communicate(comm, 2 + round);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[0]);
    MPI_Comm_idup(comm, &copy, &requests[1]);
    MPI_Ibarrier(comm, &requests[2]);
    communicate(comm, 30);
    for (int i = 0; i < 3; ++i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    wrong += sum != num_ranks;
    communicate(copy, 20);
    MPI_Send(&rank, 1, MPI_INT, (rank + 1) % num_ranks, 3, comm);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    wrong += message != (rank + num_ranks - 1) % num_ranks;
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
  }
}

// An operation that is undefined for its type is an error on all ranks; the program continues.
static void wrong_operation(void) {
  static double in[4000], out[4000];
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (int i = 0; i < 60; ++i) {
    wrong += MPI_Allreduce(in, out, 4000, MPI_DOUBLE, MPI_BAND, comm) == MPI_SUCCESS;
    wrong += MPI_Reduce(in, out, 4000, MPI_DOUBLE, MPI_BAND, 0, comm) == MPI_SUCCESS;
    wrong += MPI_Allreduce(in, out, 4000, MPI_DOUBLE, MPI_SUM, comm) != MPI_SUCCESS;
    communicate(comm, 1);
  }
  MPI_Comm_free(&comm);
}

// Only ranks 0 and 1 exchange data. The other ranks may pass any arguments for their empty blocks
// that the MPI library accepts.
static void null_types(void) {
  enum { most = 16 };
  int sends[most] = {0}, receives[most] = {0}, places[most] = {0};
  MPI_Datatype send_types[most], receive_types[most];
  int const nulls = on_mpich() && rank != 2;
  for (int r = 0; r < most; ++r)
    send_types[r] = receive_types[r] = nulls ? MPI_DATATYPE_NULL : MPI_INT;
  if (rank == 0) sends[1] = 1, send_types[1] = MPI_INT;
  if (rank == 1) receives[0] = 1, receive_types[0] = MPI_INT;
  for (int i = 0; i < 60; ++i) {
    int const sent = 100 + i;
    int got = -1;
    MPI_Alltoallw(&sent, sends, places, send_types, &got, receives, places, receive_types,
                  MPI_COMM_WORLD);
    wrong += rank == 1 && got != sent;
  }
}

// Only rank 0 gets a part of the sum; the other ranks have no memory for theirs.
static void empty_parts(void) {
  enum { most = 16, length = 4 };
  int counts[most] = {length}, in[length], out[length];
  for (int i = 0; i < 60; ++i) {
    for (int k = 0; k < length; ++k) in[k] = rank + i, out[k] = -1;
    MPI_Reduce_scatter(in, rank == 0 ? out : NULL, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    wrong += rank == 0 && out[length - 1] != num_ranks * (num_ranks - 1) / 2 + num_ranks * i;
  }
}

// Ranks without neighbours may leave out all tables.
static void isolated(void) {
  MPI_Comm graph = MPI_COMM_NULL;
  const int degree = rank < 2, other = 1 - rank;
  const int* const table = degree ? (const int[]){0, 1} : NULL;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, &other, MPI_UNWEIGHTED, degree, &other,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  for (int i = 0; i < 60; ++i) {
    int const sent = rank + 10 * i;
    int got = -1;
    MPI_Neighbor_alltoallv(&sent, degree ? table + 1 : NULL, table, MPI_INT, &got,
                           degree ? table + 1 : NULL, table, MPI_INT, graph);
    wrong += got != (degree ? other + 10 * i : -1);
  }
  MPI_Comm_free(&graph);
}

// MPICH rejects a receive buffer that equals the send buffer, but only on that rank: the program
// may then repeat the call. Other libraries accept it, so nothing is repeated.
static void aliases(void) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (int i = 0; on_mpich() && i < 60; ++i) {
    int mine[16], all[16];
    for (int r = 0; r < 16; ++r) mine[r] = 1;
    if (rank == 0) {
      wrong += MPI_Reduce(mine, mine, 16, MPI_INT, MPI_SUM, 0, comm) == MPI_SUCCESS;
      wrong += MPI_Gather(all, 1, MPI_INT, all, 1, MPI_INT, 0, comm) == MPI_SUCCESS;
      wrong += MPI_Scatter(all, 1, MPI_INT, all, 1, MPI_INT, 0, comm) == MPI_SUCCESS;
      wrong += MPI_Alltoall(all, 1, MPI_INT, all, 1, MPI_INT, comm) == MPI_SUCCESS;
    }
    wrong += MPI_Reduce(mine, all, 16, MPI_INT, MPI_SUM, 0, comm) != MPI_SUCCESS;
    wrong += rank == 0 && all[15] != num_ranks;
    communicate(comm, 1);
  }
  MPI_Comm_free(&comm);
}

// MPICH does not see that the root's block is sent onto itself if the datatype has a hole at its end.
static void padded_alias(void) {
  MPI_Datatype padded = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &padded);
  MPI_Type_commit(&padded);
  for (int i = 0; on_mpich() && i < 60; ++i) {
    int all[32] = {0};
    all[2 * rank] = rank + i;
    wrong += MPI_Gather(&all[2 * rank], 1, padded, all, 1, padded, 1, MPI_COMM_WORLD) != MPI_SUCCESS;
    for (int r = 0; rank == 1 && r < num_ranks; ++r) wrong += all[2 * r] != r + i;
  }
  MPI_Type_free(&padded);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  char const* const mode = argc > 1 ? argv[1] : "";
  communicate(MPI_COMM_WORLD, 9);
  if (strcmp(mode, "atexit") == 0) return atexit(end_in_atexit);
  if (strcmp(mode, "self") == 0) end_in_callback();
  if (strcmp(mode, "free") == 0) free_with_callbacks();
  if (strcmp(mode, "free_first") == 0) free_first();
  if (strcmp(mode, "outstanding") == 0) with_others_under_way();
  if (strcmp(mode, "wrong_operation") == 0) wrong_operation();
  if (strcmp(mode, "null_types") == 0) null_types();
  if (strcmp(mode, "empty_parts") == 0) empty_parts();
  if (strcmp(mode, "isolated") == 0) isolated();
  if (strcmp(mode, "padded_alias") == 0) padded_alias();
  if (strcmp(mode, "aliases") == 0) aliases();
  if (strcmp(mode, "self") != 0) report();
  MPI_Finalize();
  if (strcmp(mode, "self") == 0 && rank == 0) printf("%d wrong\n", wrong);
  return 0;
}

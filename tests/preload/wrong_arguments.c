// SPDX-License-Identifier: BSL-1.0
//
// Every collective with wrong arguments, before and after the communicator is tuned. Rank 0 prints
// the error class that the call returned and what its error handler was given. All ranks make the
// same mistake and every MPI library finds it before it communicates.
#include <mpi.h>

#include <stdio.h>
#include <string.h>

static int handled, handled_class;

static void on_error(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  ++handled;
  MPI_Error_class(*code, &handled_class);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, num_ranks = 1;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &num_ranks);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(on_error, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm ring = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &num_ranks, (int[]){1}, 0, &ring);
  MPI_Comm_set_errhandler(ring, handler);

  enum { most_ranks = 8 };
  int in[64 * most_ranks] = {0}, out[64 * most_ranks];
  int ones[most_ranks], negative[most_ranks], places[most_ranks];
  MPI_Aint bytes[most_ranks];
  MPI_Datatype ints[most_ranks], nulls[most_ranks];
  for (int r = 0; r < most_ranks; ++r) {
    ones[r] = 1;
    negative[r] = -1;
    places[r] = r;
    bytes[r] = r * (MPI_Aint)sizeof(int);
    ints[r] = MPI_INT;
    nulls[r] = MPI_DATATYPE_NULL;
  }
  MPI_Datatype const none = MPI_DATATYPE_NULL;
  // A handle that is none. (Open MPI looks for marks of a freed one at its address.)
#ifdef OMPI_MAJOR_VERSION
  static char freed[8192];
  memset(freed, -1, sizeof freed);
  MPI_Comm const invalid = (MPI_Comm)freed;
#else
  MPI_Comm const invalid = (MPI_Comm)0x12345678;
#endif

#define TRY(call)                                                                          \
  do {                                                                                     \
    handled = handled_class = 0;                                                           \
    int class = 0;                                                                         \
    MPI_Error_class(call, &class);                                                         \
    if (rank == 0)                                                                         \
      printf("%-60.60s class %2d, handler called %d times with class %2d\n", #call, class, \
             handled, handled_class);                                                      \
  } while (0)

// MPICH 4.0 lets negative counts pass in some collectives, and crashes.
#ifdef MPICH_VERSION
#define TRY_COUNT(call) (void)negative
#else
#define TRY_COUNT(call) TRY(call)
#endif

  for (int round = 0; round < 2; ++round) {
    TRY(MPI_Bcast(out, 1, MPI_INT, num_ranks, comm));
    TRY(MPI_Bcast(out, 1, MPI_INT, -1, comm));
    TRY(MPI_Bcast(out, -1, MPI_INT, 0, comm));
    TRY(MPI_Bcast(out, 1, none, 0, comm));
    TRY(MPI_Bcast(out, 1, MPI_INT, 0, MPI_COMM_NULL));
    TRY_COUNT(MPI_Allreduce(in, out, -1, MPI_INT, MPI_SUM, comm));
    TRY(MPI_Allreduce(in, out, 1, none, MPI_SUM, comm));
    TRY(MPI_Allreduce(in, out, 1, MPI_INT, MPI_OP_NULL, comm));
    TRY(MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_BAND, comm));
    TRY(MPI_Allreduce(in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL));
    TRY(MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, num_ranks, comm));
    TRY_COUNT(MPI_Reduce(in, out, -1, MPI_INT, MPI_SUM, 0, comm));
    TRY(MPI_Reduce(in, out, 1, MPI_INT, MPI_OP_NULL, 0, comm));
    TRY(MPI_Reduce(in, out, 1, MPI_DOUBLE, MPI_BAND, 0, comm));
    TRY_COUNT(MPI_Reduce_scatter(in, out, negative, MPI_INT, MPI_SUM, comm));
    TRY(MPI_Reduce_scatter(in, out, ones, none, MPI_SUM, comm));
    TRY_COUNT(MPI_Reduce_scatter_block(in, out, -1, MPI_INT, MPI_SUM, comm));
    TRY(MPI_Reduce_scatter_block(in, out, 1, MPI_INT, MPI_OP_NULL, comm));
    TRY_COUNT(MPI_Gather(in, -1, MPI_INT, out, -1, MPI_INT, 0, comm));
    TRY(MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, num_ranks, comm));
    TRY_COUNT(MPI_Gatherv(in, -1, MPI_INT, out, negative, places, MPI_INT, 0, comm));
    TRY(MPI_Gatherv(in, 1, MPI_INT, out, ones, places, MPI_INT, -1, comm));
    TRY_COUNT(MPI_Scatter(in, -1, MPI_INT, out, -1, MPI_INT, 0, comm));
    TRY(MPI_Scatter(in, 1, none, out, 1, none, 0, comm));
    TRY_COUNT(MPI_Scatterv(in, negative, places, MPI_INT, out, -1, MPI_INT, 0, comm));
    TRY(MPI_Scatterv(in, ones, places, MPI_INT, out, 1, MPI_INT, num_ranks, comm));
    TRY_COUNT(MPI_Allgather(in, -1, MPI_INT, out, -1, MPI_INT, comm));
    TRY(MPI_Allgather(in, 1, none, out, 1, none, comm));
    TRY_COUNT(MPI_Allgatherv(in, -1, MPI_INT, out, negative, places, MPI_INT, comm));
    TRY(MPI_Allgatherv(in, 1, none, out, ones, places, none, comm));
    TRY(MPI_Allgather(in, -1, MPI_INT, out, 1, MPI_INT, comm));
    TRY(MPI_Allgather(in, 1, none, out, 1, MPI_INT, comm));
    TRY(MPI_Allgather(in, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, comm));
    TRY(MPI_Allgatherv(in, 1, none, out, ones, places, MPI_INT, comm));
    TRY(MPI_Allgatherv(in, 1, MPI_INT, MPI_IN_PLACE, ones, places, MPI_INT, comm));
    TRY(MPI_Alltoall(in, 1, none, out, 1, MPI_INT, comm));
    TRY(MPI_Alltoall(in, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, comm));
    TRY(MPI_Alltoallv(in, ones, places, MPI_INT, MPI_IN_PLACE, ones, places, MPI_INT, comm));
    if (rank == 0) {
      TRY(MPI_Gather(in, 1, none, out, 1, MPI_INT, 0, comm));
      TRY(MPI_Gather(in, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, comm));
      TRY(MPI_Gatherv(in, 1, MPI_INT, MPI_IN_PLACE, ones, places, MPI_INT, 0, comm));
      TRY(MPI_Scatter(in, 1, MPI_INT, out, 1, none, 0, comm));
      TRY(MPI_Scatter(MPI_IN_PLACE, 1, MPI_INT, out, 1, MPI_INT, 0, comm));
      TRY(MPI_Scatterv(MPI_IN_PLACE, ones, places, MPI_INT, out, 1, MPI_INT, 0, comm));
    }
    TRY_COUNT(MPI_Alltoall(in, -1, MPI_INT, out, -1, MPI_INT, comm));
    TRY(MPI_Alltoall(in, 1, none, out, 1, none, comm));
    TRY_COUNT(MPI_Alltoallv(in, negative, places, MPI_INT, out, negative, places, MPI_INT, comm));
    TRY(MPI_Alltoallv(in, ones, places, none, out, ones, places, none, comm));
    TRY_COUNT(MPI_Alltoallw(in, negative, places, ints, out, negative, places, ints, comm));
    TRY(MPI_Alltoallw(in, ones, places, nulls, out, ones, places, nulls, comm));
    TRY_COUNT(MPI_Scan(in, out, -1, MPI_INT, MPI_SUM, comm));
    TRY(MPI_Scan(in, out, 1, MPI_INT, MPI_OP_NULL, comm));
    TRY_COUNT(MPI_Exscan(in, out, -1, MPI_INT, MPI_SUM, comm));
    TRY(MPI_Exscan(in, out, 1, none, MPI_SUM, comm));
    TRY(MPI_Neighbor_alltoall(in, -1, MPI_INT, out, -1, MPI_INT, ring));
    TRY(MPI_Neighbor_alltoall(in, 1, none, out, 1, none, ring));
    TRY(MPI_Neighbor_alltoall(in, 1, MPI_INT, out, 1, MPI_INT, comm));
    TRY(MPI_Neighbor_alltoall(in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_NULL));
    TRY(MPI_Neighbor_alltoallv(in, negative, places, MPI_INT, out, negative, places, MPI_INT,
                               ring));
    TRY(MPI_Neighbor_alltoallv(in, ones, places, none, out, ones, places, none, ring));
    TRY(MPI_Neighbor_alltoallw(in, negative, bytes, ints, out, negative, bytes, ints, ring));
    TRY(MPI_Neighbor_alltoallw(in, ones, bytes, nulls, out, ones, bytes, nulls, ring));
    TRY(MPI_Neighbor_allgather(in, -1, MPI_INT, out, -1, MPI_INT, ring));
    TRY(MPI_Neighbor_allgather(in, 1, none, out, 1, none, ring));
    TRY(MPI_Neighbor_allgatherv(in, 1, MPI_INT, out, negative, places, MPI_INT, ring));
    TRY(MPI_Neighbor_allgatherv(in, 1, none, out, ones, places, none, ring));
    TRY(MPI_Barrier(MPI_COMM_NULL));
    TRY(MPI_Barrier(invalid));
    TRY(MPI_Bcast(out, 1, MPI_INT, 0, invalid));
    TRY(MPI_Allreduce(in, out, 1, MPI_INT, MPI_SUM, invalid));
    // Right calls, so that the next round finds a tuned communicator.
    for (int call = 0; call < 40; ++call) {
      int sum = 0;
      MPI_Allreduce(&call, &sum, 1, MPI_INT, MPI_SUM, comm);
      if (sum != call * num_ranks) printf("wrong sum\n");
      MPI_Allgather(in, 1, MPI_INT, out, 1, MPI_INT, comm);
      MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, comm);
      MPI_Neighbor_alltoall(in, 1, MPI_INT, out, 1, MPI_INT, ring);
      MPI_Neighbor_alltoallv(in, ones, places, MPI_INT, out, ones, places, MPI_INT, ring);
      MPI_Neighbor_alltoallw(in, ones, bytes, ints, out, ones, bytes, ints, ring);
      MPI_Neighbor_allgather(in, 1, MPI_INT, out, 1, MPI_INT, ring);
      MPI_Neighbor_allgatherv(in, 1, MPI_INT, out, ones, places, MPI_INT, ring);
    }
  }
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&ring);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}

// SPDX-License-Identifier: BSL-1.0
//
// A C program that knows nothing of railpass: all blocking neighbourhood collectives on a periodic
// grid, in which two ranks are each other's neighbours on both sides, and on a graph with edges to
// oneself and twice to the next rank. Rank 0 prints what all ranks received, so two runs compare.
#include <mpi.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

// Compiled with LARGE, the forms with large counts of MPI 4.0.
#ifdef LARGE
typedef MPI_Count number;
typedef MPI_Aint place;
#define MPI_Neighbor_alltoall MPI_Neighbor_alltoall_c
#define MPI_Neighbor_alltoallv MPI_Neighbor_alltoallv_c
#define MPI_Neighbor_alltoallw MPI_Neighbor_alltoallw_c
#define MPI_Neighbor_allgather MPI_Neighbor_allgather_c
#define MPI_Neighbor_allgatherv MPI_Neighbor_allgatherv_c
#else
typedef int number;
typedef int place;
#endif

enum { degree = 4, most_count = 2000, most_ranks = 8, rounds = 40 };

static int rank, num_ranks;
static int in[degree * most_count], out[degree * most_count];

static void show(const char* name, const char* topology, uint64_t hash) {
  uint64_t all[most_ranks];
  MPI_Gather(&hash, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (rank > 0) return;
  printf("%-22s %-6s", name, topology);
  for (int r = 0; r < num_ranks; ++r) printf(" %016llx", (unsigned long long)all[r]);
  printf("\n");
}

// Of each pair of neighbours both know how much they exchange.
static void exchange_all(MPI_Comm comm, const char* topology) {
  number same[degree], of_pair[degree];
  place places[degree];
  MPI_Aint bytes[degree];
  MPI_Datatype types[degree];

#define EACH(name, call)                                                            \
  do {                                                                              \
    uint64_t hash = 14695981039346656037u;                                          \
    for (int round = 0; round < rounds; ++round) {                                  \
      const int count = round % 3 == 0 ? 1 : round % 3 == 1 ? 100 : most_count;     \
      for (int i = 0; i < degree * most_count; ++i) {                               \
        in[i] = i * 7 + rank * 100000 + round;                                      \
        out[i] = -1;                                                                \
      }                                                                             \
      for (int i = 0; i < degree; ++i) {                                            \
        same[i] = count;                                                            \
        of_pair[i] = round % 5 == 0 ? 0 : (count + 1) / 2;                          \
        places[i] = i * most_count;                                                 \
        bytes[i] = (MPI_Aint)(sizeof(int) * (size_t)(degree - 1 - i) * most_count); \
        types[i] = MPI_INT;                                                         \
      }                                                                             \
      (void)same, (void)of_pair, (void)places, (void)bytes, (void)types;            \
      call;                                                                         \
      for (int i = 0; i < degree * most_count; ++i)                                 \
        hash = (hash ^ (uint64_t)(uint32_t)out[i]) * 1099511628211u;                \
    }                                                                               \
    show(name, topology, hash);                                                     \
  } while (0)

  EACH("Neighbor_alltoall", MPI_Neighbor_alltoall(in, count, MPI_INT, out, count, MPI_INT, comm));
  EACH("Neighbor_alltoallv",
       MPI_Neighbor_alltoallv(in, of_pair, places, MPI_INT, out, of_pair, places, MPI_INT, comm));
  EACH("Neighbor_alltoallw",
       MPI_Neighbor_alltoallw(in, of_pair, bytes, types, out, of_pair, bytes, types, comm));
  EACH("Neighbor_allgather", MPI_Neighbor_allgather(in, count, MPI_INT, out, count, MPI_INT, comm));
  EACH("Neighbor_allgatherv",
       MPI_Neighbor_allgatherv(in, count, MPI_INT, out, same, places, MPI_INT, comm));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  if (num_ranks > most_ranks) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Comm grid = MPI_COMM_NULL, graph = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, 2, (int[]){num_ranks, 1}, (int[]){1, 0}, 0, &grid);
  const int before = (rank + num_ranks - 1) % num_ranks, behind = (rank + 1) % num_ranks;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, (int[]){before, rank, before, rank},
                                 MPI_UNWEIGHTED, degree, (int[]){behind, rank, rank, behind},
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  exchange_all(grid, "grid");
  exchange_all(graph, "graph");
  MPI_Comm_free(&grid);
  MPI_Comm_free(&graph);
  MPI_Finalize();
  return 0;
}

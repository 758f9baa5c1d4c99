// SPDX-License-Identifier: BSL-1.0
// A program as a user writes it, on an installed railpass.
#include <cstdio>
#include <railpass/mpi.hpp>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int num_ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  bool right = true;
  for (int i = 0; i < 20; ++i) {
    std::vector<int> values(1000, rank == 0 ? i : -1);
    railpass::mpi::broadcast(values.data(), 1000, MPI_INT, 0, MPI_COMM_WORLD);
    right = right && values == std::vector<int>(1000, i);
    int sum = 0;
    railpass::mpi::all_reduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    right = right && sum == i * num_ranks;
  }
  if (rank == 0) std::printf("%d ranks %s\n", num_ranks, right ? "right" : "wrong");
  MPI_Finalize();
  return right ? 0 : 1;
}

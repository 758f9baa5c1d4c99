// SPDX-License-Identifier: BSL-1.0
//
// Run on an emulated cluster with the expected number of ranks per host: proves that MPI sees the
// hosts as distinct and that small and large messages between them arrive unchanged.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int num_ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  const int expected_ranks = std::atoi(argv[1]);
  const int expected_per_host = std::atoi(argv[2]);

  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  int per_host = 0;
  MPI_Comm_size(host, &per_host);
  MPI_Comm_free(&host);
  int wrong = num_ranks != expected_ranks || per_host != expected_per_host;
  if (wrong)
    std::fprintf(stderr, "rank %d: %d ranks, %d on this host\n", rank, num_ranks, per_host);

  const int right = (rank + 1) % num_ranks;
  const int left = (rank + num_ranks - 1) % num_ranks;
  for (const int size : {1, 1000, 200000}) {
    const std::vector<int> sent(std::size_t(size), 1000 * size + rank);
    std::vector<int> received(std::size_t(size), -1);
    MPI_Sendrecv(sent.data(), size, MPI_INT, right, 0, received.data(), size, MPI_INT, left, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (received != std::vector<int>(std::size_t(size), 1000 * size + left)) {
      std::fprintf(stderr, "rank %d: %d integers from rank %d differ\n", rank, size, left);
      wrong = 1;
    }
  }

  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return wrong;
}

// SPDX-License-Identifier: BSL-1.0
//
// The benchmark that run.py tunes: the time of one MPI_Bcast of the slowest rank, median of 7.
//
//     mpirun -n 4 paper_otpo_broadcast BYTES
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<char> message(std::size_t(argc > 1 ? std::atoi(argv[1]) : 262144));
  std::vector<double> times_s;
  for (int run = 0; run < 8; ++run) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin_s = MPI_Wtime();
    MPI_Bcast(message.data(), int(message.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
    const double own_s = MPI_Wtime() - begin_s;
    double slowest_s = 0;
    MPI_Reduce(&own_s, &slowest_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (run > 0) times_s.push_back(slowest_s);  // the first one connects
  }
  std::sort(times_s.begin(), times_s.end());
  if (rank == 0) std::printf("broadcast: %.2f us\n", 1e6 * times_s[times_s.size() / 2]);
  MPI_Finalize();
}

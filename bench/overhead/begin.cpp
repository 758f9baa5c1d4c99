// SPDX-License-Identifier: BSL-1.0
//
// What a communicator takes to begin to be tuned: mpirun -n 8 overhead_begin [COMMUNICATORS]
//
// Each is a fresh duplicate of MPI_COMM_WORLD, which is freed again. Times are those of the slowest
// rank behind a barrier: of the beginning itself, and of the first broadcast of 8 bytes, which
// makes a context and its first plan; beside them what the MPI library takes to duplicate it.
#include "railpass/base/clock.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/mpi.hpp"

#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

namespace {

template <class Work>
double slowest_us(Work&& work) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin_s = railpass::steady_clock_s();
  work();
  double us = (railpass::steady_clock_s() - begin_s) * 1e6;
  MPI_Allreduce(MPI_IN_PLACE, &us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return us;
}

void print(const char* name, std::span<const double> us) {
  const auto later = us.subspan(1);
  std::printf("  %-20s first %8.1f us; then least %7.1f, median %7.1f, quartiles %7.1f .. %7.1f\n",
              name, us[0], railpass::quantile(later, 0), railpass::median(later),
              railpass::quantile(later, 0.25), railpass::quantile(later, 0.75));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int communicators = argc > 1 ? std::atoi(argv[1]) : 200;
  int rank = 0, num_ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  if (communicators < 2 || argc > 2) {
    if (rank == 0) std::fprintf(stderr, "usage: overhead_begin [COMMUNICATORS, at least 2]\n");
    MPI_Finalize();
    return 2;
  }
  std::vector<double> duplicates_us, begins_us, plans_us;
  for (int i = 0; i < communicators; ++i) {
    MPI_Comm comm = MPI_COMM_NULL;
    double value = 0;
    duplicates_us.push_back(slowest_us([&] { MPI_Comm_dup(MPI_COMM_WORLD, &comm); }));
    begins_us.push_back(slowest_us([&] { railpass::mpi::start_tuning(comm); }));
    plans_us.push_back(
        slowest_us([&] { railpass::mpi::broadcast(&value, 1, MPI_DOUBLE, 0, comm); }));
    MPI_Comm_free(&comm);
  }
  if (rank == 0) {
    std::printf("%d ranks, %d communicators\n", num_ranks, communicators);
    print("MPI_Comm_dup", duplicates_us);
    print("begins to be tuned", begins_us);
    print("first call", plans_us);
  }
  MPI_Finalize();
}

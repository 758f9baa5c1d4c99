// SPDX-License-Identifier: BSL-1.0
//
// Tests that ranks on hosts with different clocks know the offsets of their clocks, when tuning
// starts and after merges. The clock of emulated host i is 1000 i s ahead, so the truth is known.
#include "lib/group/base.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/mpi.hpp"

#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

double ahead_s() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const std::string name = host;
  return 1000 * std::atof(name.substr(name.find_last_not_of("0123456789") + 1).c_str());
}

/// Seconds by which the agreed clock (rank 0's clock) is ahead of this rank's clock.
double truth_s() {
  double first_s = ahead_s();
  MPI_Bcast(&first_s, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return first_s - ahead_s();
}

bool knows(double truth_s, const char* when) {
  const railpass::internal::base* const of =
      railpass::internal::bases::of_process().find(MPI_COMM_WORLD).of;
  if (!of || !of->clock) return false;
  const railpass::select::clock_offset known = of->clock->known();
  const double now_s = railpass::steady_clock_s(), off_s = known.offset_s(now_s) - truth_s,
               error_s = known.error_s(now_s);
  std::printf("%s: %.1f us off, at most %.1f us\n", when, 1e6 * off_s, 1e6 * error_s);
  constexpr double rounding_s = 1e-8;
  return std::abs(off_s) <= error_s + rounding_s;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int num_ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  const double truth = truth_s();
  railpass::mpi::configure(MPI_COMM_WORLD, "policy", "pass");  // merges all the time, long plans
  railpass::mpi::start_tuning(MPI_COMM_WORLD);
  int wrong = knows(truth, "at the start") ? 0 : 1;
  // Many sizes have many plans, which fill the replies of merges; offsets of clocks come behind.
  constexpr int num_calls = 1500, num_sizes = 12;
  for (int i = 0; i < num_calls; ++i) {
    const std::vector<int> mine(std::size_t(1) << i % num_sizes, i);
    std::vector<int> sums(mine.size());
    railpass::mpi::all_reduce(mine.data(), sums.data(), int(mine.size()), MPI_INT, MPI_SUM,
                              MPI_COMM_WORLD);
    if (sums != std::vector<int>(mine.size(), num_ranks * i)) ++wrong;
  }
  wrong += knows(truth, "after the calls") ? 0 : 1;
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return wrong;
}

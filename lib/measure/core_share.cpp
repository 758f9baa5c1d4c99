// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/core_share.hpp"

#include "lib/measure/job.hpp"
#include "railpass/base/clock.hpp"

#include <mpi.h>

#include <algorithm>
#include <time.h>

namespace railpass::internal::measure {

namespace {

double seconds_on_core() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return double(used.tv_sec) + 1e-9 * double(used.tv_nsec);
}

}  // namespace

double least_core_share() {
  constexpr double for_s = 40e-3;
  quiet_barrier(MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);  // ends on all ranks at once
  const double began_s = steady_clock_s(), used_s = seconds_on_core();
  double passed_s = 0;
  while (passed_s < for_s) passed_s = steady_clock_s() - began_s;
  double share = std::min(1.0, (seconds_on_core() - used_s) / passed_s);
  MPI_Allreduce(MPI_IN_PLACE, &share, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  return share;
}

}  // namespace railpass::internal::measure

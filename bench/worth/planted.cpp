// SPDX-License-Identifier: BSL-1.0
//
// A program with a planted gain: a set of two versions, the second of which has so many percent
// less work to do. mpirun -n 2 worth_planted PERCENT [CALLS [MICROSECONDS]]
// bench/worth/planted.py runs it many times and counts what the summary says.
#include "railpass/base/clock.hpp"
#include "railpass/function_set.hpp"

#include <algorithm>
#include <cstdlib>

namespace {

volatile double result = 1;

void work(long steps) {
  double x = result;
  for (long i = 0; i < steps; ++i) x = x * 0.999999 + 1e-6;
  result = x;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const double percent = argc > 1 ? std::atof(argv[1]) : 0;
  const long calls = argc > 2 ? std::atol(argv[2]) : 3000;
  const double call_us = argc > 3 ? std::atof(argv[3]) : 200;
  // The least of some times: what the machine takes away is not work.
  double least_s = 1;
  for (int i = 0; i < 50; ++i) {
    const double begin_s = railpass::steady_clock_s();
    work(100000);
    least_s = std::min(least_s, railpass::steady_clock_s() - begin_s);
  }
  double steps = call_us * 1e-6 / least_s * 100000;
  MPI_Bcast(&steps, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  {
    railpass::function_set<void()> step("step", MPI_COMM_WORLD);
    step.add("usual", [&] { work(long(steps)); });
    step.add("other", [&] { work(long(steps * (1 - percent / 100))); });
    for (long i = 0; i < calls; ++i) step();
  }
  MPI_Finalize();
}

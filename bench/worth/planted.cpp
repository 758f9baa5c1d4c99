// SPDX-License-Identifier: BSL-1.0
//
// A program with a planted gain: a function set whose last version has PERCENT less work than its
// other versions.
//
//     mpirun -n 2 worth_planted PERCENT [CALLS [MICROSECONDS [PROGRAM]]]
//
// Without PROGRAM, the set has two versions without communication. PROGRAM is COLLECTIVE/LATENESS,
// for example all_reduce/random: the set has six versions, and each version ends with that
// collective of the MPI library. LATENESS is the computing before a call, in lengths of a call:
// random: 0 to 10 on each rank; one_late: 5 on the last rank; by_turns: 5 on one rank, in turns;
// none. The environment variable SEED is the seed of random lateness. bench/worth/planted.py
// launches the program many times and counts the summary's verdicts.
#include "railpass/base/clock.hpp"
#include "railpass/function_set.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

namespace {

volatile double result = 1;

void work(double steps) {
  double x = result;
  for (long i = 0; i < long(steps); ++i) x = x * 0.999999 + 1e-6;
  result = x;
}

// The least of some times: what the machine takes away is not work.
double steps_per_second() {
  double least_s = 1;
  for (int i = 0; i < 50; ++i) {
    const double begin_s = railpass::steady_clock_s();
    work(100000);
    least_s = std::min(least_s, railpass::steady_clock_s() - begin_s);
  }
  return 100000 / least_s;
}

[[noreturn]] void refuse(const char* what, std::string_view given) {
  std::fprintf(stderr, "worth_planted: expected %s, not '%s'\n", what, std::string(given).c_str());
  std::exit(2);
}

void communicate(std::string_view collective, int num_ranks) {
  static double out[64], in[64];
  if (collective == "all_reduce")
    MPI_Allreduce(out, in, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  else if (collective == "broadcast")
    MPI_Bcast(out, 4, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  else if (collective == "gather")
    MPI_Gather(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  else if (collective == "all_to_all" && num_ranks <= 64)
    MPI_Alltoall(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, MPI_COMM_WORLD);
  else
    refuse("all_reduce, broadcast, gather, or all_to_all of at most 64 ranks", collective);
}

struct lateness {
  std::string_view how;  // empty: none is late
  int rank = 0, num_ranks = 1;
  std::mt19937 random;

  double calls(long round) {
    if (how.empty() || how == "none") return 0;
    if (how == "random") return std::uniform_real_distribution<>(0, 10)(random);
    if (how == "one_late") return rank == num_ranks - 1 ? 5 : 0;
    if (how == "by_turns") return rank == round % num_ranks ? 5 : 0;
    refuse("none, random, one_late or by_turns", how);
  }
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const double percent = argc > 1 ? std::atof(argv[1]) : 0;
  const long calls = argc > 2 ? std::atol(argv[2]) : 3000;
  const double call_us = argc > 3 ? std::atof(argv[3]) : 200;
  const std::string_view program = argc > 4 ? argv[4] : "";
  const std::string_view collective = program.substr(0, program.find('/'));
  lateness late;
  late.how = program.substr(std::min(program.size(), collective.size() + 1));
  MPI_Comm_rank(MPI_COMM_WORLD, &late.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &late.num_ranks);
  const char* const seed = std::getenv("SEED");
  late.random.seed(unsigned(seed ? std::atoi(seed) : 1) * 1000 + unsigned(late.rank));
  double steps = call_us * 1e-6 * steps_per_second();
  MPI_Bcast(&steps, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  {
    railpass::function_set<void()> step("step", MPI_COMM_WORLD);
    const auto add = [&](const std::string& name, double share) {
      step.add(name, [&, share] {
        work(steps * share);
        if (!program.empty()) communicate(collective, late.num_ranks);
      });
    };
    add("usual", 1);
    for (int i = 1; i < (program.empty() ? 1 : 5); ++i) add("alike" + std::to_string(i), 1);
    add("other", 1 - percent / 100);
    for (long i = 0; i < calls; ++i) {
      work(steps * late.calls(i));
      step();
    }
  }
  MPI_Finalize();
}

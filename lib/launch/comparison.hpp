// SPDX-License-Identifier: BSL-1.0
//
// Times of a command without and with railpass, run in turn.
#pragma once

#include "lib/files/comparison.hpp"
#include "lib/launch/launcher.hpp"
#include "lib/report/output.hpp"
#include "lib/report/terminal.hpp"
#include "lib/tune/command.hpp"

#include <array>
#include <iosfwd>
#include <limits>
#include <string>
#include <vector>

namespace railpass::internal::launch {

/// The same command, without railpass and with the preload library.
struct way {
  std::string name;
  mpi_family family;  ///< of the program
  tune::command_request command;
  std::vector<double> seconds{};
};

/// `mpi`: the family that --mpi names, or empty. Throws usage_error or error.
std::array<way, 2> both_ways(const std::vector<std::string>& command, const std::string& mpi,
                             double limit_s);

struct run_plan {
  int repetitions;  ///< pairs of runs, after one pair that warms caches up
  report::progress_bar& progress;
  std::ostream& complaints;  ///< for lines of the runs
  double budget_s = std::numeric_limits<double>::infinity();
};

/// Makes fewer pairs of runs where the next pair is likely to end after the budget, or a signal
/// interrupts. Adds the times to `ways`. Throws error if a run fails, or if no pair ended before
/// the interrupt.
files::comparison run_in_turn(std::array<way, 2>& ways, const std::vector<std::string>& command,
                              const run_plan& plan);

/// Throws error, for after the results have been shown, if a signal has interrupted the runs.
void fail_if_interrupted(const files::comparison& found, int repetitions);

/// Both ways' times in a table, and their ratio with its interval.
std::string times_of(const files::comparison& found, report::output& out);
/// In colours where the terminal has them.
std::string verdict_of(const files::comparison& found, const report::output& out);

}  // namespace railpass::internal::launch

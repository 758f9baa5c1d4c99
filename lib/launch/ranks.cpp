// SPDX-License-Identifier: BSL-1.0
#include "lib/launch/ranks.hpp"

#include "railpass/base/units.hpp"

#include <algorithm>
#include <sstream>

namespace railpass::internal::launch {

namespace {

// Results of long lists of collectives, sizes and arms take tens of MiB.
constexpr std::size_t most_output_bytes = std::size_t{256} << 20;

}  // namespace

std::string reason_in(const tune::command_result& done, const std::string& verb) {
  std::string of_broken_rank;
  std::istringstream lines(done.errors);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("railpass " + verb + ": ")) return line;
    if (line.starts_with("railpass: rank ")) of_broken_rank = line;
  }
  return of_broken_rank.empty() ? done.failure : of_broken_rank;
}

std::vector<std::string> ignored_settings_in(const std::string& errors) {
  std::vector<std::string> found;
  std::istringstream lines(errors);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("railpass: RAILPASS_") && std::ranges::find(found, line) == found.end())
      found.push_back(line);
  return found;
}

tune::command_result run_ranks(const starter& by, int ranks, std::vector<std::string> options,
                               const std::vector<std::string>& program, double limit_s) {
  const std::vector<std::string> passing = passing_options(by.kind, {});
  options.insert(options.end(), passing.begin(), passing.end());
  tune::command_result done =
      tune::run_command({.line = quoted(command_of(by, ranks, options, program)),
                         .environment = {},
                         .limit_s = limit_s,
                         .kept_bytes = most_output_bytes},
                        tune::watch_signals());
  if (!done.failure.empty())
    done.failure = reason_in(done, program.at(1));
  else if (done.output_is_cut)
    done.failure = "railpass " + program.at(1) + " wrote more than " +
                   format_bytes(std::int64_t(most_output_bytes)) + " of results";
  return done;
}

std::vector<std::string> placing_options(launcher_kind kind, spread how) {
  const bool spreads = how == spread::over_hosts;
  switch (kind) {
    case launcher_kind::open_mpi:
      return spreads ? std::vector<std::string>{"--map-by", "node"} : std::vector<std::string>{};
    case launcher_kind::hydra:
    case launcher_kind::intel:
      return spreads ? std::vector<std::string>{"-ppn", "1"} : std::vector<std::string>{};
    case launcher_kind::slurm:
      return {spreads ? "--distribution=cyclic" : "--nodes=1"};
    case launcher_kind::unknown:
      break;
  }
  return {};
}

}  // namespace railpass::internal::launch

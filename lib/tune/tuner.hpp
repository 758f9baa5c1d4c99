// SPDX-License-Identifier: BSL-1.0
//
// Runs a tuning: warm-up; launches that the search asks for; further launches of all candidates for
// the best, up to the wanted number; at last, the best and the command's defaults in turn, so that
// the measured gain is free of selection bias.
#pragma once

#include "lib/tune/journal.hpp"
#include "lib/tune/measurements.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace railpass::internal::tune {

struct tuning_plan {
  std::string search = "model";
  precision wanted;
  int warm_ups = 1;
  double budget_s = 0;          ///< 0: no limit
  std::uint64_t most_runs = 0;  ///< launches; 0: no limit
  std::uint64_t seed = 1;
};

/// A ratio with its confidence interval.
struct likely_ratio {
  double value = 1, low = 1, high = 1;
};

struct tuning {
  explicit tuning(std::vector<goal> goals) : measured(std::move(goals)) {}

  table measured;
  std::uint64_t runs = 0;  ///< all launches
  double spent_s = 0;      ///< in launches
  double noise = 0;        ///< standard deviation of the logarithm of one launch's value
  bool complete = true;    ///< false: time or launches ran out before the search ended
  std::optional<combination> recommended;
  std::vector<outcome> defaults, checks;  ///< launches in turn: the command's defaults, recommended
  /// Ratio of the recommended combination's cost to the defaults' cost: below 1 is better, for
  /// every goal. For two goals, the geometric mean.
  std::optional<likely_ratio> cost_ratio;
};

/// Launches the command with a combination, or with its defaults if the argument is null.
using launcher = std::function<outcome(const combination*)>;
/// Called before each launch: launches so far, launches expected in all, seconds left.
using watcher = std::function<void(std::uint64_t, double, double)>;

/// Exceptions of the launcher pass through; the journal then has all earlier launches.
tuning tune(const space& where, const std::vector<goal>& goals, const tuning_plan& plan,
            const launcher& launch, journal& kept, const watcher& watch = {});

/// The weights of searches: each goal alone, and two goals in equal parts.
std::vector<std::vector<double>> weightings(std::size_t goals);

}  // namespace railpass::internal::tune

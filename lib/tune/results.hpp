// SPDX-License-Identifier: BSL-1.0
//
// The results of a tuning, for people and programs.
#pragma once

#include "lib/tune/tuner.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace railpass::internal::tune {

/// Combinations that cannot be distinguished from the best of them.
struct tie_group {
  double score = 0;  ///< of the best combination
  std::vector<combination> members;
};
/// All combinations without a failed launch, best group first.
std::vector<tie_group> tie_groups(const table& measured, std::span<const double> weights,
                                  const precision& wanted);

/// The share of the scores' variation that a parameter explains, or a pair beyond the effects of
/// each alone. Computed from a model of all measurements.
struct effect {
  std::vector<std::size_t> parameters;  ///< one or two
  double share = 0;                     ///< of the variance, 0 to 1
  /// For one parameter: the mean score of each level minus the best level's mean score, and the
  /// standard error of this difference by the launches with these levels.
  std::vector<double> levels{}, errors{};
  /// Whether a level, or a pair of levels, differs from the rest by more than noise explains.
  bool shown = false;
};
/// Largest first, with single parameters and pairs mixed. Empty for fewer than three measurements.
std::vector<effect> effects_of(const space& where, const table& measured,
                               std::span<const double> weights, double noise, double confidence);

/// For two goals: the combinations that no combination beats in one goal while matching the other
/// goal, in the order of the first goal.
std::vector<combination> pareto_front(const table& measured, const precision& wanted);

/// All results, computed once for every output format.
struct report {
  report(const space& parameters, const tuning_plan& asked, std::string command_line,
         std::string target_name, tuning result);

  const space& where;
  tuning_plan plan;
  std::string command, target;
  tuning found;
  std::vector<double> weights;  ///< of the goals, in groups, effects and the recommendation
  std::vector<tie_group> groups;
  std::vector<effect> effects;
  std::vector<combination> front;                                          ///< for two goals
  std::vector<std::pair<std::string, std::vector<combination>>> failures;  ///< by message

  /// The value behind a score: of the goal, or the geometric mean of two goals.
  double shown(double score) const;
  /// The typical value of launches with the command's defaults; nothing if a launch failed.
  std::optional<double> default_value() const;
  /// The best combination, if launches alternately with the defaults have shown that it is better,
  /// or if the defaults failed there.
  std::optional<combination> recommended() const;
  /// The recommended combination's value relative to the defaults; for two goals, of their costs.
  std::optional<likely_ratio> ratio_to_default() const;
  /// A sentence with this ratio, or that no difference is shown.
  std::string finding() const;
  /// Whether any combination was launched twice.
  bool noise_known() const;
  /// A sentence on the variation between launches.
  std::string noise_sentence() const;
};

/// {runs, default, groups: [{value, count, combinations: [{name: value}]}], recommended, ...}
std::string to_json(const report& r);
/// A page that needs only a browser.
std::string to_html(const report& r);

/// The part of a result that --union and --intersection read: the parameters, each with the values
/// that occur in the best group.
std::vector<parameter> read_winners(const std::string& path);
/// The parameters of all files with the values of any (or of each) of them. Throws error if files
/// have different parameters, or if a parameter has no value left.
std::vector<parameter> union_of(const std::vector<std::string>& paths);
std::vector<parameter> intersection_of(const std::vector<std::string>& paths);

}  // namespace railpass::internal::tune

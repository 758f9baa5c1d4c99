// SPDX-License-Identifier: BSL-1.0
//
// What a tuning found, for people and programs.
#pragma once

#include "lib/tune/tuner.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace railpass::internal::tune {

/// Combinations that cannot be told from the best of them.
struct tie_group {
  double score = 0;  ///< of the best
  std::vector<combination> members;
};
/// All combinations without a failed launch, best group first.
std::vector<tie_group> tie_groups(const table& measured, std::span<const double> weights,
                                  const precision& wanted);

/// How much of the variation of the scores a parameter, or two together beyond each alone, explain;
/// from a model of all that was measured.
struct effect {
  std::vector<std::size_t> parameters;  ///< one or two
  double share = 0;                     ///< of the variance, 0 to 1
  /// For one parameter: the mean score of each level less that of the best level, and the standard
  /// error of that by the launches with these levels.
  std::vector<double> levels{}, errors{};
  /// Whether some level, or combination of two, is further from the others than noise explains.
  bool shown = false;
};
/// Largest first, single parameters and pairs mixed. Empty if fewer than three were measured.
std::vector<effect> effects_of(const space& where, const table& measured,
                               std::span<const double> weights, double noise, double confidence);

/// Of two goals: the combinations that no other one is better than in one goal and as good in the
/// other, in the order of the first goal.
std::vector<combination> pareto_front(const table& measured, const precision& wanted);

/// All of it, computed once for every way of showing it.
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
  std::vector<combination> front;                                          ///< of two goals
  std::vector<std::pair<std::string, std::vector<combination>>> failures;  ///< by message

  /// The value that stands for a score: of the one goal, or the geometric mean of two.
  double shown(double score) const;
  /// The typical value of the launches with the command's defaults; nothing if one failed.
  std::optional<double> default_value() const;
  /// What was found best, unless it was launched beside the defaults and not shown to be better:
  /// then nothing is recommended.
  std::optional<combination> recommended() const;
  /// The recommended combination's value over the defaults'; of two goals their costs'.
  std::optional<likely_ratio> ratio_to_default() const;
  /// One sentence: that ratio, or that no difference is shown.
  std::string finding() const;
  /// Whether anything was launched twice.
  bool noise_known() const;
  /// One sentence: what launches vary by.
  std::string noise_sentence() const;
};

/// {runs, default, groups: [{value, count, combinations: [{name: value}]}], recommended, ...}
std::string to_json(const report& r);
/// A page that needs nothing but a browser.
std::string to_html(const report& r);

/// What --union and --intersection read of a result: the parameters, each with the values that
/// occur in the best group.
std::vector<parameter> read_winners(const std::string& path);
/// The parameters of all files with the values of any (or of each) of them. Throws error if files
/// have different parameters, or if a parameter has no value left.
std::vector<parameter> union_of(const std::vector<std::string>& paths);
std::vector<parameter> intersection_of(const std::vector<std::string>& paths);

}  // namespace railpass::internal::tune

// SPDX-License-Identifier: BSL-1.0
//
// What follows from the launches of a characterisation: benches, profile, rules, plan.
#pragma once

#include "lib/characterise/folder.hpp"
#include "lib/libraries/library.hpp"
#include "railpass/knowledge/plan.hpp"

#include <string>
#include <vector>

namespace railpass::internal::characterise {

inline constexpr const char* profile_name = "profile.json";

/// Fits profile.json of the folder to these files. Throws error.
void fit(const folder& to, const std::vector<std::string>& files);

struct outcome {
  std::vector<libraries::named_bench> benches{};  ///< one for each number of ranks
  int launches = 0;
  double measured_s = 0;
  std::string rules_path{};  ///< empty: no rules
  libraries::rule_set rules{};
  std::vector<std::string> rule_settings{}, rule_limits{};
  std::string no_rules{};   ///< why there are no rules, in a sentence
  std::string plan_path{};  ///< empty: no plan
  std::vector<knowledge::planned_calls> plan{};
  std::vector<std::string> left_out{};  ///< what was not measured, in sentences
};

/// Writes bench_N.json for each number N of ranks, profile.json, plan.json and, for a library with
/// rules, rules.LIBRARY, as export writes it. Throws error if no launch succeeded.
outcome write_outcome(const folder& to, const question& q);

/// What users can do with the outcome, in sentences.
std::vector<std::string> advice(const outcome& o);

}  // namespace railpass::internal::characterise

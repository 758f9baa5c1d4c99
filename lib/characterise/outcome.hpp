// SPDX-License-Identifier: BSL-1.0
//
// The results of a characterisation: benches, profile, rules and plan, from all its launches.
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
  std::vector<std::string> left_out{};  ///< a sentence for each thing that was not measured
};

/// Writes bench_N.json for each number N of ranks, profile.json, plan.json and, for a library with
/// rules, rules.LIBRARY, as export writes it. All of these are of all launches in the folder;
/// `q` only says what was to be measured. Throws error if no launch succeeded.
outcome write_outcome(const folder& to, const question& q);

/// Sentences that tell users how to use the outcome.
std::vector<std::string> advice(const outcome& o);

}  // namespace railpass::internal::characterise

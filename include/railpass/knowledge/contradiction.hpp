// SPDX-License-Identifier: BSL-1.0
//
// Detects measurements that contradict knowledge. The knowledge is then set aside for that context,
// and learning starts afresh.
#pragma once

#include "railpass/knowledge/analysis.hpp"
#include "railpass/knowledge/experience.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

namespace railpass::knowledge {

/// An arm's known ratio to native: from its pairs, or from the times of both arms without pairs.
/// Empty if its error is unknown, or the arm is native.
inline std::optional<select::pair_record> known_worth(const experience& of, std::string_view arm) {
  const auto find = [&](std::string_view name) {
    return std::ranges::find(of.arms, name, &arm_experience::arm);
  };
  const auto its = find(arm), native = find("native");
  if (arm == "native" || its == of.arms.end()) return std::nullopt;
  if (its->pairs && its->pairs->deviation) return its->pairs;
  if (native == of.arms.end() || its->times.samples < 2 || native->times.samples < 2)
    return std::nullopt;
  const auto variance = [](const arm_experience& a) {
    return a.times.spread * a.times.spread / double(a.times.samples);
  };
  return select::pair_record{
      .gain = std::log(native->times.quantiles.median_s / its->times.quantiles.median_s),
      .deviation = std::sqrt(variance(*its) + variance(*native))};
}

/// Whether an arm's ratio to native has clearly changed, by more than a factor of 1 + p_max. A
/// change that slows all calls contradicts nothing. False as long as one of the errors is unknown.
inline bool contradicts(const select::pair_record& measured, const select::pair_record& known,
                        double p_max) {
  if (!measured.deviation || !known.deviation) return false;
  const double beyond = std::abs(measured.gain - known.gain) - std::log1p(p_max);
  return beyond > 2 * std::hypot(*measured.deviation, *known.deviation);
}

/// The paper's rule: the arm takes longer than MaxExecTime, or is faster by the same factor. For
/// reproducing the paper: with this rule a slower processor contradicts everything.
inline bool contradicts_by_time(double measured_s, const forecast& said) {
  return measured_s > said.largest_s || measured_s * said.largest_s < said.seconds * said.seconds;
}

}  // namespace railpass::knowledge

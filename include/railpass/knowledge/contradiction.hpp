// SPDX-License-Identifier: BSL-1.0
//
// When what is measured contradicts what was known, the knowledge is set aside for that context and
// learning starts afresh.
#pragma once

#include "railpass/knowledge/analysis.hpp"
#include "railpass/knowledge/experience.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

namespace railpass::knowledge {

/// What an arm is worth beside native as these runs knew it: by its pairs, or by the times of both
/// if it has none. Nothing if nobody knows how exact that is, or the arm is native.
inline std::optional<select::pair_record> known_worth(const experience& of, std::string_view arm) {
  const auto find = [&](std::string_view name) {
    return std::ranges::find(of.arms, name, &arm_experience::arm);
  };
  const auto its = find(arm), native = find("native");
  if (arm == "native" || its == of.arms.end()) return std::nullopt;
  if (its->pairs && its->pairs->deviation) return its->pairs;
  if (native == of.arms.end() || its->samples < 2 || native->samples < 2) return std::nullopt;
  const auto variance = [](const arm_experience& a) {
    return a.spread * a.spread / double(a.samples);
  };
  return select::pair_record{.gain = std::log(native->median_s / its->median_s),
                             .deviation = std::sqrt(variance(*its) + variance(*native))};
}

/// Whether an arm is now worth something else beside native than was known: by more than a factor
/// of 1 + p_max, and clearly so. What makes all calls slower contradicts nothing. Never as long as
/// one of them does not say how exact it is.
inline bool contradicts(const select::pair_record& measured, const select::pair_record& known,
                        double p_max) {
  if (!measured.deviation || !known.deviation) return false;
  const double beyond = std::abs(measured.gain - known.gain) - std::log1p(p_max);
  return beyond > 2 * std::hypot(*measured.deviation, *known.deviation);
}

/// The paper's rule: the arm takes longer than MaxExecTime, or deviates as much the other way. For
/// what redoes the paper: a processor that runs slower today contradicts everything.
inline bool contradicts_by_time(double measured_s, const forecast& said) {
  return measured_s > said.largest_s || measured_s * said.largest_s < said.seconds * said.seconds;
}

}  // namespace railpass::knowledge

// SPDX-License-Identifier: BSL-1.0
//
// Chooses the variants of a plan from the knowledge of one machine.
#pragma once

#include "collectives/registry.hpp"
#include "railpass/knowledge/experience.hpp"
#include "railpass/knowledge/plan.hpp"
#include "railpass/select/lockstep/context.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace railpass::knowledge {

/// The spread of times or comparisons of which there are too few to know it.
inline constexpr double unknown_spread = 0.5;

/// The comparison of an arm with native: ln(native's time / the arm's time), and its standard
/// deviation if it is known. From calls of both at the same time if there are any, otherwise from
/// the means. Native has gain 0.
struct gain_over_native {
  double gain = 0;
  std::optional<double> deviation{};
};

/// Empty if native was never timed.
inline std::optional<gain_over_native> compared_with_native(const experience& e,
                                                            const arm_experience& a) {
  if (a.arm == "native") return gain_over_native{};
  if (a.pairs) return gain_over_native{a.pairs->gain, a.pairs->deviation};
  const auto native = std::ranges::find(e.arms, "native", &arm_experience::arm);
  if (native == e.arms.end()) return std::nullopt;
  const auto error_of = [](const select::sampled_times& t) {
    const double spread = t.samples < 4 ? std::max(t.spread, unknown_spread) : t.spread;
    return spread / std::sqrt(double(t.samples));
  };
  return gain_over_native{std::log(native->times.mean_s / a.times.mean_s),
                          std::hypot(error_of(a.times), error_of(native->times))};
}

/// The certain part of an arm's gain over native: the gain less its standard deviation. At most 0:
/// none is certain. Empty if native was never timed.
inline std::optional<double> certain_gain(const experience& e, const arm_experience& a) {
  const auto g = compared_with_native(e, a);
  if (!g || a.arm == "native") return std::nullopt;
  return g->gain - g->deviation.value_or(unknown_spread);
}

/// The arm with the largest certain gain over native, and its gain; native (null) if no arm has a
/// certain gain.
inline std::pair<const arm_experience*, gain_over_native> surest_gain(const experience& e) {
  const arm_experience* best = nullptr;
  double most = 0;
  for (const arm_experience& a : e.arms)
    if (const auto sure = certain_gain(e, a); sure && *sure > most) best = &a, most = *sure;
  return {best, best ? *compared_with_native(e, *best) : gain_over_native{}};
}

/// The arm that the experience speaks for: that of surest_gain(), else native, else the one with
/// the least mean time. Null without arms.
inline const arm_experience* best_arm_of(const experience& e) {
  if (const arm_experience* const sure = surest_gain(e).first) return sure;
  const auto native = std::ranges::find(e.arms, "native", &arm_experience::arm);
  if (native != e.arms.end()) return &*native;
  const auto mean_of = [](const arm_experience& a) { return a.times.mean_s; };
  const auto best = std::ranges::min_element(e.arms, {}, mean_of);
  return best == e.arms.end() ? nullptr : &*best;
}

struct frozen {
  std::vector<planned_calls> calls{};
  std::vector<std::string> left_out{};  ///< a sentence for each kind of call that no plan contains
};

namespace detail {

/// The calls of one size class.
struct frozen_class {
  collective op = collective::broadcast;
  int size_class = 0;
  planned_calls calls{};
  std::map<std::string, double> gains{};  // certain ones, by arm
  double total_s = 0;
};

inline std::map<std::string, double> certain_gains(const experience& e) {
  std::map<std::string, double> gains;
  for (const arm_experience& a : e.arms)
    if (const auto sure = certain_gain(e, a); sure && *sure > 0) gains.emplace(a.arm, *sure);
  return gains;
}

// The calls of the size classes between two known ones.
inline std::optional<planned_calls> calls_between(const frozen_class& a, const frozen_class& b) {
  constexpr int most_classes = 6;
  const int classes = b.size_class - a.size_class - 1;
  if (shape_of(a.calls) != shape_of(b.calls) || classes < 1 || classes > most_classes)
    return std::nullopt;
  planned_calls between = a.calls;
  between.from_bytes = *a.calls.to_bytes + 1;
  between.to_bytes = b.calls.from_bytes - 1;
  if (a.gains.empty() && b.gains.empty()) return between;
  double most = 0;
  for (const auto& [arm, gain] : a.gains)
    if (const auto other = b.gains.find(arm); other != b.gains.end())
      if (const double least = std::min(gain, other->second); least > most)
        most = least, between.variant = arm;
  if (most == 0) return std::nullopt;
  return between;
}

inline double total_s(const experience& e) {
  double sum = 0;
  for (const arm_experience& a : e.arms) sum += double(a.calls) * a.times.mean_s;
  return sum;
}

}  // namespace detail

/// The plan for problems of one machine. Each size class gets the arm with the surest gain over
/// native, from the problem that took most time. Up to six classes between two known ones get the
/// arm that gains at both, and gains the most where it gains less; without such an arm they stay
/// native. Neighbouring classes with the same variant become one entry. Calls whose sizes only
/// pairs of ranks know stay native, because no arm suits all sizes. Function sets and calls between
/// neighbours are not part of a plan.
inline frozen freeze(std::span<const experience> known) {
  using detail::frozen_class;
  frozen result;
  const auto leave_out = [&](std::string sentence) {
    if (std::ranges::find(result.left_out, sentence) == result.left_out.end())
      result.left_out.push_back(std::move(sentence));
  };
  std::vector<frozen_class> classes;
  for (const experience& e : known) {
    const auto op = find_collective(e.of.collective);
    if (!op || name_of(*op) != e.of.collective) {
      leave_out("'" + e.of.collective + "' is not a collective that plans contain");
      continue;
    }
    if (describe(*op).lengths == block_lengths::of_pair) {
      leave_out(e.of.collective + " stays native: no single rank knows the sizes of its calls");
      continue;
    }
    experience usable = e;
    std::erase_if(usable.arms, [&](const arm_experience& a) { return !is_arm(*op, a.arm); });
    const auto [arm, gain] = surest_gain(usable);
    const int size_class = select::size_class_of(e.of.bytes);
    frozen_class one{.op = *op,
                     .size_class = size_class,
                     .calls = {.collective = e.of.collective,
                               .operation = e.of.operation,
                               .num_ranks = e.of.num_ranks,
                               .ranks_per_node = e.of.ranks_per_node,
                               .rails = e.of.rails,
                               .from_bytes = select::smallest_bytes(std::uint8_t(size_class)),
                               .to_bytes = select::smallest_bytes(std::uint8_t(size_class + 1)) - 1,
                               .variant = arm ? arm->arm : "native"},
                     .gains = detail::certain_gains(usable),
                     .total_s = detail::total_s(e)};
    const auto same = std::ranges::find_if(classes, [&](const frozen_class& other) {
      return other.size_class == one.size_class && shape_of(other.calls) == shape_of(one.calls);
    });
    if (same == classes.end())
      classes.push_back(std::move(one));
    else if (one.total_s > same->total_s)
      *same = std::move(one);
  }
  std::ranges::sort(classes, [](const frozen_class& a, const frozen_class& b) {
    return std::tuple(a.op, shape_of(a.calls), a.size_class) <
           std::tuple(b.op, shape_of(b.calls), b.size_class);
  });
  for (std::size_t i = 0; i < classes.size(); ++i) {
    append(result.calls, classes[i].calls);
    if (i + 1 == classes.size()) break;
    if (const auto between = detail::calls_between(classes[i], classes[i + 1]))
      append(result.calls, *between);
  }
  return result;
}

}  // namespace railpass::knowledge

// SPDX-License-Identifier: BSL-1.0
//
// Turns knowledge of earlier runs into priors of a new run. Knowledge is never taken as truth:
// trust falls with distance, with age and with few samples. near.hpp does the same for near
// problems.
#pragma once

#include "railpass/knowledge/experience.hpp"
#include "railpass/knowledge/joined.hpp"
#include "railpass/select/belief/neighbours.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace railpass::knowledge {

/// The estimated time of an arm from its times in earlier runs, `days_ago` days old. The spread
/// covers differences between runs and the uncertainty from the number of samples.
inline select::time_estimate told_by(const arm_experience& arm, double days_ago = 0) {
  const select::sampled_times& a = arm.times;
  // Runs on one machine differ by this (in the logarithm), however well their calls agree. The
  // variance grows by as much each month (updates, other neighbours, ageing parts).
  constexpr double from_run_to_run = 0.03, of_one_sample = 0.25, month_days = 30;
  const double of_samples = std::max(a.spread, a.samples < 4 ? of_one_sample : 0.0);
  const double left_open = of_samples * of_samples / double(a.samples),
               variance =
                   from_run_to_run * from_run_to_run * (1 + days_ago / month_days) + left_open;
  // Among many arms with few samples, the fastest one was probably lucky.
  return {.mean_s = a.quantiles.median_s * std::exp(variance / 2 + std::sqrt(left_open)),
          .spread = std::sqrt(variance)};
}

/// The distance of two problems in octaves of size; empty if they share nothing.
inline std::optional<double> distance(const problem& a, const problem& b) {
  if (a.collective != b.collective || a.operation != b.operation || a.rails != b.rails ||
      a.num_ranks != b.num_ranks || a.ranks_per_node != b.ranks_per_node)
    return std::nullopt;
  const auto octave = [](std::int64_t bytes) {
    return std::log2(double(std::max<std::int64_t>(1, bytes)));
  };
  const double octaves = std::abs(octave(a.bytes) - octave(b.bytes));
  if (octaves > select::most_octaves) return std::nullopt;
  return octaves;
}

/// Problems this near count as the same: calls whose lengths differ have another mean size in each
/// run.
inline constexpr double same_octaves = 1.0 / 32;

/// The joined knowledge of the problem closest to `of` and of problems of nearly that size; empty
/// if no problem is at a finite distance.
inline std::optional<experience> closest(std::span<const experience> all, const problem& of) {
  const experience* best = nullptr;
  double least = 0;
  for (const experience& e : all)
    if (const auto d = distance(e.of, of); d && (!best || *d < least)) best = &e, least = *d;
  if (!best) return std::nullopt;
  std::vector<const experience*> same;
  for (const experience& e : all)
    if (const auto d = distance(e.of, best->of); d && *d <= same_octaves) same.push_back(&e);
  std::ranges::stable_sort(same, {}, &experience::last_at);
  experience found = *same.front();
  for (std::size_t i = 1; i < same.size(); ++i) found = joined(found, *same[i]);
  found.of = best->of;
  return found;
}

/// Gives arms without a model the times that they had for the same problem in earlier runs.
/// @param name_of returns an arm's name for its number
/// @param growth ln of the time of this problem's size over the time of the known size
template <class NameOf>
void remember_times(std::span<select::arm_prior> priors, const experience& known,
                    const NameOf& name_of, double days_ago = 0, double growth = 0) {
  constexpr double doubt = 0.25;  // of the growth
  for (select::arm_prior& p : priors) {
    const auto a = std::ranges::find(known.arms, name_of(p.arm), &arm_experience::arm);
    if (a == known.arms.end()) continue;
    p.remembered = true;
    p.earlier_samples = a->times.samples;
    if (!p.measured_only) continue;
    const select::time_estimate told = told_by(*a, days_ago);
    p.measured_only = false;
    p.spread = std::hypot(told.spread, doubt * growth);
    p.log_seconds = told.log_seconds() + growth;
  }
}

namespace detail {

/// The median over the arms of ln of the predicted time over the prediction for another size.
inline double growth_of(std::span<const select::arm_prior> priors,
                        std::span<const select::arm_prior> predicted_there) {
  std::vector<double> growth;
  for (const select::arm_prior& p : priors) {
    const auto there = std::ranges::find(predicted_there, p.arm, &select::arm_prior::arm);
    if (!p.measured_only && there != predicted_there.end() && !there->measured_only)
      growth.push_back(p.log_seconds - there->log_seconds);
  }
  return growth.empty() ? 0 : median(growth);
}

}  // namespace detail

/// Corrects the priors of arms with the knowledge of a similar problem. Native, which no model
/// predicts, gets its known time if the problem is less than an octave away; the time grows with
/// the size as the predictions of other arms do.
/// @param name_of returns an arm's name for its number
/// @param known knowledge of a problem `octaves` away, `days_ago` days old
/// @param predicted_there predictions for that problem; equal to the priors if it is the same
///   problem
template <class NameOf>
void correct_by_experience(std::span<select::arm_prior> priors, const NameOf& name_of,
                           const experience& known,
                           std::span<const select::arm_prior> predicted_there, double octaves,
                           double days_ago = 0) {
  const double growth = detail::growth_of(priors, predicted_there);
  select::correct_by_neighbour(
      priors,
      [&](int arm) -> std::optional<select::time_estimate> {
        const auto a = std::ranges::find(known.arms, name_of(arm), &arm_experience::arm);
        return a == known.arms.end() ? std::nullopt : std::optional(told_by(*a, days_ago));
      },
      predicted_there, octaves);
  if (octaves < 1) remember_times(priors, known, name_of, days_ago, growth);
}

}  // namespace railpass::knowledge

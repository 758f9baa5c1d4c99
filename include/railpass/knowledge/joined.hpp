// SPDX-License-Identifier: BSL-1.0
//
// Joins the knowledge of several runs about the same problem. Counts add up. Means, spreads,
// quantiles and pairs are weighted by samples, but older runs weigh at most four times as much as
// newer runs. A machine that has changed is therefore known as it is after a few runs, and a run of
// a few samples does not outweigh the runs before.
#pragma once

#include "railpass/knowledge/experience.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace railpass::knowledge {

namespace detail {

inline constexpr std::int64_t most_of_older = 4;     // times the newer ones' samples
inline constexpr std::int64_t always_of_older = 32;  // samples, however few the newer ones are
inline constexpr double half_worth_days = 30;

// Exact in any file.
inline std::int64_t sum_of(std::int64_t a, std::int64_t b) {
  return std::min(a + b, std::int64_t{1} << 53);
}

inline std::int64_t weight_of_older(std::int64_t older, std::int64_t newer) {
  return std::min(older, std::max(most_of_older * newer, always_of_older));
}

inline select::pair_record joined_pairs(const select::pair_record& older,
                                        const select::pair_record& newer) {
  if (older.deviation.has_value() != newer.deviation.has_value())
    return select::joined(older, newer);
  select::pair_record limited = older;
  limited.pairs = weight_of_older(older.pairs, newer.pairs);
  select::pair_record both = select::joined(limited, newer);
  both.pairs = sum_of(older.pairs, newer.pairs);
  both.wins = sum_of(older.wins, newer.wins);
  return both;
}

inline select::sampled_times joined_times(const select::sampled_times& older,
                                          const select::sampled_times& newer) {
  const double of_older = double(weight_of_older(older.samples, newer.samples)),
               of_newer = double(newer.samples), all = of_older + of_newer;
  const auto between = [&](double a, double b) { return (of_older * a + of_newer * b) / all; };
  // The joint spread includes the distance of the means.
  const double apart = std::log(newer.mean_s / older.mean_s);
  const select::time_quantiles &old = older.quantiles, &late = newer.quantiles;
  return {.samples = sum_of(older.samples, newer.samples),
          .mean_s = between(older.mean_s, newer.mean_s),
          .spread = std::sqrt(between(older.spread * older.spread, newer.spread * newer.spread) +
                              of_older * of_newer / (all * all) * apart * apart),
          .quantiles = {.low_s = between(old.low_s, late.low_s),
                        .median_s = between(old.median_s, late.median_s),
                        .high_s = between(old.high_s, late.high_s)}};
}

inline arm_experience joined_arms(const arm_experience& older, const arm_experience& newer) {
  arm_experience both{.arm = newer.arm,
                      .calls = sum_of(older.calls, newer.calls),
                      .times = joined_times(older.times, newer.times),
                      .prior = newer.prior ? newer.prior : older.prior,
                      .pairs = newer.pairs ? newer.pairs : older.pairs};
  if (older.pairs && newer.pairs) both.pairs = joined_pairs(*older.pairs, *newer.pairs);
  return both;
}

}  // namespace detail

/// Joins two experiences of the same problem; last_at decides which is older.
inline experience joined(const experience& a, const experience& b) {
  const bool in_order = a.last_at <= b.last_at;
  const experience &older = in_order ? a : b, &newer = in_order ? b : a;
  experience both = newer;
  both.runs = detail::sum_of(older.runs, newer.runs);
  if (!older.first_at.empty() && (older.first_at < both.first_at || both.first_at.empty()))
    both.first_at = older.first_at;
  for (const arm_experience& o : older.arms) {
    const auto same = std::ranges::find(both.arms, o.arm, &arm_experience::arm);
    if (same == both.arms.end())
      both.arms.push_back(o);
    else
      *same = detail::joined_arms(o, *same);
  }
  return both;
}

/// Seconds since 1970 of a time such as 2026-01-31T12:00:00Z; empty if invalid.
inline std::optional<std::int64_t> seconds_of(const std::string& utc) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, end = 0;
  if (utc.size() != 20 ||
      std::sscanf(utc.c_str(), "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &year, &month, &day, &hour, &minute,
                  &second, &end) != 6 ||
      end != 20)
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(unsigned(month)),
                                         std::chrono::day(unsigned(day))};
  if (!date.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
    return std::nullopt;
  const std::chrono::seconds whole = std::chrono::sys_days(date).time_since_epoch();
  return whole.count() + 3600 * hour + 60 * minute + second;
}

/// Days between two points in time, at least 0; empty if one of them is invalid.
inline std::optional<double> days_between(const std::string& earlier, const std::string& later) {
  const auto from = seconds_of(earlier), to = seconds_of(later);
  if (!from || !to) return std::nullopt;
  return double(std::max<std::int64_t>(0, *to - *from)) / 86400;
}

/// The value of an experience if there is no room for all: the time of its calls, halved for every
/// 30 days that it is older than `newest_at`.
inline double worth_s(const experience& e, const std::string& newest_at) {
  double time_s = 0;
  for (const arm_experience& a : e.arms) time_s += double(a.calls) * a.times.mean_s;
  const double days = days_between(e.last_at, newest_at).value_or(365);
  return time_s * std::exp2(-days / detail::half_worth_days);
}

}  // namespace railpass::knowledge

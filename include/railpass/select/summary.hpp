// SPDX-License-Identifier: BSL-1.0
//
// What tuning was worth, from a statistics dump: for the end of a run and for `railpass stats`.
#pragma once

#include "railpass/base/units.hpp"
#include "railpass/select/dump.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace railpass::select {

/// An estimate with the standard deviation of its error.
struct estimate {
  double value = 0;
  double deviation = 0;
};

/// A believed mean time with more spread says nothing about how long the calls would have taken.
inline constexpr double known_spread = 0.5;

/// The time that a context's calls would have taken more with the MPI library's own collective,
/// exploring counted in; negative: they took longer. From the believed mean times of the arms,
/// whose errors are taken to be independent; calls of an arm that was tried too seldom for that
/// count as they were measured. Nothing if the MPI library's own was timed too seldom there.
inline std::optional<estimate> saved_s(const context_statistics& context) {
  const auto native =
      std::ranges::find_if(context.arms, [](const auto& a) { return a.arm == "native"; });
  if (native == context.arms.end() || native->samples == 0 || !native->posterior)
    return std::nullopt;
  double others = 0, saved = 0, variance = 0;
  for (const arm_statistics& a : context.arms) {
    if (&a == &*native || a.calls == 0) continue;
    const double calls = double(a.calls);
    others += calls;
    if (a.posterior && a.posterior->spread <= known_spread) {
      saved += calls * (native->posterior->mean_s - a.posterior->mean_s);
      variance += std::pow(calls * a.posterior->mean_s * a.posterior->spread, 2);
    } else {
      saved += calls * native->posterior->mean_s - a.time_s;
    }
  }
  if (others > 0 && native->posterior->spread > known_spread) return std::nullopt;
  variance += std::pow(others * native->posterior->mean_s * native->posterior->spread, 2);
  return estimate{saved, std::sqrt(variance)};
}

/// "broadcast of 64KiB to below 128KiB on 8 ranks"
inline std::string name_of(const context_statistics& c) {
  const std::string sizes =
      c.collective == "barrier"
          ? ""
          : " of " + format_bytes(c.from_bytes) + " to below " + format_bytes(c.to_bytes + 1);
  return c.collective + sizes + " on " + std::to_string(c.num_ranks) + " ranks";
}

/// A short paragraph in one line: what was tuned, the time in it, what that saved with its 95 %
/// interval, the largest gains.
inline std::string summary_of(const statistics_dump& dump) {
  if (dump.contexts.empty())
    return "nothing was tuned: rank 0 led no communicator with more than a few collective calls";
  std::vector<std::string> collectives;
  std::vector<std::pair<double, const context_statistics*>> gains;
  std::int64_t calls = 0, unknown = 0;
  double time_s = 0, learning_s = dump.merge_cost_s, variance = 0, saved = -dump.merge_cost_s;
  for (const context_statistics& c : dump.contexts) {
    if (std::ranges::find(collectives, c.collective) == collectives.end())
      collectives.push_back(c.collective);
    calls += c.calls;
    time_s += c.time_s;
    learning_s += c.exploration_cost_s;
    if (const auto here = saved_s(c)) {
      saved += here->value;
      variance += here->deviation * here->deviation;
      // Only what stands out of the noise is a gain.
      if (here->value > 1.96 * here->deviation && here->value > 0)
        gains.emplace_back(here->value, &c);
    } else {
      ++unknown;
    }
  }
  std::ranges::stable_sort(gains, [](const auto& a, const auto& b) { return a.first > b.first; });

  std::string text = std::to_string(calls) + " calls of " + std::to_string(collectives.size()) +
                     " tuned collectives (";
  for (const std::string& name : collectives) text += (&name == &collectives[0] ? "" : ", ") + name;
  text += ") took " + format_seconds(time_s) + " in " + std::to_string(dump.contexts.size()) +
          " contexts; ";
  const double reach = 1.96 * std::sqrt(variance);
  if (unknown == std::int64_t(dump.contexts.size()))
    text += "what the MPI library's own would have taken is not known, they were timed too seldom.";
  else
    text += (std::abs(saved) < reach
                 ? "whether the MPI library's own would have taken more or less cannot be told"
                 : "the MPI library's own would have taken about " +
                       format_seconds(std::abs(saved)) + (saved < 0 ? " less" : " more")) +
            " (95 % interval: " + format_seconds(saved - reach) + " to " +
            format_seconds(saved + reach) + " saved, " + format_seconds(learning_s) +
            " spent on learning counted in).";
  if (unknown > 0 && unknown < std::int64_t(dump.contexts.size()))
    text += " " + std::to_string(unknown) +
            " contexts in which these were timed too seldom are not counted in that.";
  if (!gains.empty()) text += " Largest gains:";
  for (std::size_t i = 0; i < std::min<std::size_t>(3, gains.size()); ++i)
    text += std::string(i ? "; " : " ") + name_of(*gains[i].second) + ", " +
            format_seconds(gains[i].first) + " by " + gains[i].second->current_arm;
  if (!gains.empty()) text += '.';
  return text;
}

}  // namespace railpass::select

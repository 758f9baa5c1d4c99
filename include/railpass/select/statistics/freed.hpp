// SPDX-License-Identifier: BSL-1.0
//
// Statistics of freed communicators, bounded since programs may make and free any number.
#pragma once

#include "railpass/select/lockstep/context.hpp"
#include "railpass/select/statistics/dump.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace railpass::select {

/// Contexts beyond this number are summed over all other communicators, under this name. Contexts
/// beyond twice this number are dropped.
inline constexpr std::size_t most_freed_contexts = 128;
inline constexpr const char* other_freed_communicators = "(others that were freed)";

namespace detail {

// Contexts with a mean size are of any size, and belong to its class.
inline bool is_same_context(const context_statistics& a, const context_statistics& b) {
  return a.communicator == b.communicator && a.collective == b.collective &&
         a.num_ranks == b.num_ranks && a.ranks_per_node == b.ranks_per_node && a.rails == b.rails &&
         (a.mean_bytes && b.mean_bytes
              ? size_class_of(a.first_bytes) == size_class_of(b.first_bytes)
              : a.from_bytes == b.from_bytes) &&
         a.operation == b.operation && a.policy == b.policy;
}

inline void add_arm(arm_statistics& to, const arm_statistics& one) {
  const double before = double(to.times.samples), more = double(one.times.samples),
               all = before + more;
  if (one.times.samples > 0) {
    const auto squared = [](const arm_statistics& a) { return a.times.spread * a.times.spread; };
    const auto between = [&](double a, double b) { return (before * a + more * b) / all; };
    to.times.mean_s = between(to.times.mean_s, one.times.mean_s);
    to.times.spread = std::sqrt(between(squared(to), squared(one)));
    const time_quantiles &known = to.times.quantiles, &late = one.times.quantiles;
    to.times.quantiles = {.low_s = between(known.low_s, late.low_s),
                          .median_s = between(known.median_s, late.median_s),
                          .high_s = between(known.high_s, late.high_s)};
  }
  to.calls += one.calls;
  to.times.samples += one.times.samples;
  to.time_s += one.time_s;
  to.exploration_cost_s += one.exploration_cost_s;
  if (one.pairs) to.pairs = to.pairs ? joined(*to.pairs, *one.pairs) : *one.pairs;
  to.posterior = one.posterior;
  to.probability = one.probability;
}

// Calls and times add up; what is believed, and why, is the later one's.
inline void add_context(context_statistics& to, context_statistics&& one) {
  for (arm_statistics& arm : one.arms) {
    const auto known = std::ranges::find(to.arms, arm.arm, &arm_statistics::arm);
    if (known != to.arms.end())
      add_arm(*known, arm);
    else
      to.arms.push_back(std::move(arm));
  }
  if (to.mean_bytes && one.mean_bytes && to.calls + one.calls > 0) {
    to.mean_bytes = (double(to.calls) * *to.mean_bytes + double(one.calls) * *one.mean_bytes) /
                    double(to.calls + one.calls);
    to.first_bytes = std::llround(*to.mean_bytes);
    to.from_bytes = std::min(to.from_bytes, one.from_bytes);
    to.to_bytes = std::max(to.to_bytes, one.to_bytes);
  }
  to.calls += one.calls;
  to.time_s += one.time_s;
  to.exploration_cost_s += one.exploration_cost_s;
  to.checked_calls += one.checked_calls;
  to.checks_s += one.checks_s;
  to.current_arm = std::move(one.current_arm);
  to.reason = std::move(one.reason);
  if (one.skew_s) to.skew_s = one.skew_s;
  if (one.skew_p90_s) to.skew_p90_s = one.skew_p90_s;
  if (one.core_given_share) to.core_given_share = one.core_given_share;
  if (one.cost_share) to.cost_share = one.cost_share;
  to.overlapped_share = std::max(to.overlapped_share, one.overlapped_share);
  if (one.own_s) to.own_s = one.own_s;
}

}  // namespace detail

/// Adds what a communicator that is freed has learnt, of the arms that ran. The contexts of
/// communicators with the same name and shape count together. Throws std::bad_alloc; some of `one`
/// may then be in `all`.
inline void add_freed(statistics_dump& all, statistics_dump&& one) {
  all.merges += std::exchange(one.merges, 0);
  all.merge_cost_s += std::exchange(one.merge_cost_s, 0);
  for (context_statistics& context : one.contexts) {
    std::erase_if(context.arms, [&](const arm_statistics& a) {
      return a.calls == 0 && a.arm != context.current_arm;
    });
    context.arms.shrink_to_fit();
    const auto find = [&] {
      return std::ranges::find_if(all.contexts, [&](const context_statistics& known) {
        return detail::is_same_context(known, context);
      });
    };
    auto known = find();
    if (known == all.contexts.end() && all.contexts.size() >= most_freed_contexts) {
      context.communicator = other_freed_communicators;
      known = find();
    }
    if (known != all.contexts.end())
      detail::add_context(*known, std::move(context));
    else if (all.contexts.size() < 2 * most_freed_contexts)
      all.contexts.push_back(std::move(context));
  }
}

/// Adds the traffic over rails that are closed. Rails with the same names count together. Throws
/// std::bad_alloc; some of `closed` may then be in `all`.
inline void add_closed(statistics_dump& all, std::vector<rail_statistics>&& closed) {
  for (rail_statistics& one : closed) {
    const auto known = std::ranges::find_if(all.rails, [&](const rail_statistics& r) {
      return r.rails == one.rails && r.rail == one.rail;
    });
    if (known == all.rails.end()) {
      all.rails.push_back(std::move(one));
      continue;
    }
    one.sent_bytes += known->sent_bytes;
    one.changes += known->changes;
    *known = std::move(one);
  }
  for (rail_statistics& one : all.rails) {
    double sent = 0;
    for (const rail_statistics& r : all.rails)
      if (r.rails == one.rails) sent += double(r.sent_bytes);
    if (sent > 0) one.share = double(one.sent_bytes) / sent;
  }
}

}  // namespace railpass::select

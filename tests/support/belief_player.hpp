// SPDX-License-Identifier: BSL-1.0
//
// Plays a policy in a belief_world, through the lockstep with its merges: what the calls took
// beside always native, and whether the policy is stuck at the end.
#pragma once

#include "support/belief_worlds.hpp"
#include "support/world_player.hpp"

#include <array>
#include <vector>

namespace railpass::test {

inline constexpr std::array<std::int64_t, 4> belief_horizons{30, 100, 1000, 10000};

struct belief_verdict {
  std::array<double, belief_horizons.size()> ratios{};  ///< to always native, merges included
  double late = 1;      ///< the last tenth of the calls, beside the best arm of each context there
  bool counts = false;  ///< trying each arm once costs below 5 % of the run

  bool stuck() const { return counts && late > 1.2; }
};

inline belief_verdict play_beliefs(const belief_world& w, const policy_maker& make,
                                   std::uint64_t seed) {
  constexpr double cheap_to_try = 0.05;
  belief_verdict v{.counts = w.price_of_trying_all() < cheap_to_try};
  select::lockstep steps({}, 0, w.num_ranks);
  steps.expect({.spread_s = w.merge_s, .at_once_s = w.merge_at_once_s});
  const std::int64_t late_from = w.calls - w.calls / 10;
  double now_s = 0, native_s = 0, late_s = 0, before_s = 0;
  std::vector<std::vector<double>> late_arms_s;  // by context and arm
  for (int c = 0; c < w.num_contexts(); ++c) late_arms_s.emplace_back(w.priors_of(c).size());
  std::size_t horizon = 0;
  for (std::int64_t call = 0; call < w.calls; ++call) {
    now_s += detail::make_merges(steps, w, now_s, [] {});
    const int context = int(call % w.num_contexts());
    const select::context_key key{.op = collective::broadcast, .size_class = std::uint8_t(context)};
    select::timed_call c = steps.next_call(key);
    if (c.needs_first_plan) {
      now_s += w.first_plan_s;
      const auto priors = w.priors_of(context);
      steps.adopt(
          c.context,
          steps.lead(c.context, make({.priors = {priors.begin(), priors.end()}, .seed = seed})));
      c = steps.next_call(key);
    }
    const double own_s = w.mean_s(c.arm, call);
    if (c.timed) steps.record(c, w.draw_s(c.arm, call, before_s, seed));
    before_s = own_s;
    now_s += own_s;
    native_s += w.mean_s(select::native_arm, call);
    if (call >= late_from) {
      late_s += own_s;
      auto& arms_s = late_arms_s[std::size_t(context)];
      for (std::size_t a = 0; a < arms_s.size(); ++a) arms_s[a] += w.mean_s(int(a), call);
    }
    if (call + 1 == belief_horizons[horizon]) v.ratios[horizon++] = now_s / native_s;
  }
  double best_s = 0;
  for (const auto& arms_s : late_arms_s) best_s += std::ranges::min(arms_s);
  v.late = late_s / best_s;
  return v;
}

}  // namespace railpass::test

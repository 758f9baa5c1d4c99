// SPDX-License-Identifier: BSL-1.0
//
// A leader's statistics of a context.
#pragma once

#include "railpass/base/statistics.hpp"
#include "railpass/select/lockstep/lockstep.hpp"
#include "railpass/select/statistics/dump.hpp"

#include <cmath>
#include <span>
#include <utility>
#include <vector>

namespace railpass::internal {

/// Zeros without samples.
inline select::sampled_times times_of(const select::arm_record& r) {
  if (r.sums.samples == 0) return {};
  select::sampled_times times{
      .samples = r.sums.samples, .mean_s = r.sums.mean_s(), .spread = std::sqrt(r.sums.variance())};
  if (!r.some_s.empty())
    times.quantiles = {.low_s = r.some_s.quantile(0.1),
                       .median_s = r.some_s.quantile(0.5),
                       .high_s = r.some_s.quantile(0.9)};
  return times;
}

/// For a context with a policy: adds the times of its arms, and why an arm is in use. `name_of`
/// returns an arm's name by number.
template <class NameOf>
void add_arms(const select::lockstep& steps, int context, const NameOf& name_of,
              select::context_statistics& to) {
  const select::policy* const policy = steps.policy_of(context);
  to.current_arm = name_of(steps.incumbent(context));
  to.reason = policy->reason();
  to.calls = steps.calls(context);
  to.overlapped_share = steps.overlapped_share();
  to.cost_share = steps.cost_share(context);
  to.checked_calls = steps.checks(context).calls;
  to.checks_s = steps.checks(context).seconds;
  if (const std::span<const double> skews = steps.skews_s(context); !skews.empty()) {
    to.skew_s = median(skews);
    to.skew_p90_s = quantile(skews, 0.9);
  }
  const std::vector<select::arm_record> records = steps.records(context);
  select::all_meetings::pooled_spread of_context;
  for (const select::arm_record& r : records) of_context.add(r.meetings);
  // A policy that has replaced one in the last merge has made no plan.
  std::vector<double> probabilities = policy->probabilities();
  probabilities.resize(policy->arms().size());
  std::size_t index = 0;
  for (const select::arm_prior& prior : policy->arms()) {
    select::arm_statistics a{.arm = name_of(prior.arm), .probability = probabilities[index++]};
    std::int64_t rest = 0;
    double latest_s = 0;
    for (const select::arm_record& r : records)
      if (r.arm == prior.arm) {
        a.calls = r.calls;
        a.times = times_of(r);
        a.exploration_cost_s = r.exploration_cost_s;
        a.pairs = r.meetings.record(of_context);
        rest = r.calls - r.timed_calls;
        latest_s = r.latest_s;
        a.time_s = r.time_s;
      }
    if (!prior.measured_only)
      a.prior = {.mean_s = std::exp(prior.log_seconds), .spread = prior.spread};
    a.posterior = policy->posterior(prior.arm);
    if (latest_s == 0 && a.posterior) latest_s = a.posterior->mean_s;
    a.time_s += double(rest) * latest_s;
    to.time_s += a.time_s;
    to.exploration_cost_s += a.exploration_cost_s;
    to.arms.push_back(std::move(a));
  }
}

}  // namespace railpass::internal

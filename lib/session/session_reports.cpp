// SPDX-License-Identifier: BSL-1.0
//
// What a session tells: its statistics, lines of the trace, and where it hangs.
#include "lib/session/process.hpp"
#include "lib/session/session.hpp"
#include "railpass/base/settings.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/knowledge/recall.hpp"

#include <cmath>
#include <cstdio>
#include <new>

namespace railpass {

namespace {

// Mean and spread of the samples.
void add_samples(const select::arm_record& r, select::arm_statistics& result) {
  result.samples = r.samples;
  result.exploration_cost_s = r.exploration_cost_s;
  result.pairs = r.meetings.record();
  if (r.samples == 0) return;
  if (!r.some_s.empty())
    result.quantiles = select::time_quantiles{.low_s = r.some_s.quantile(0.1),
                                              .median_s = r.some_s.quantile(0.5),
                                              .high_s = r.some_s.quantile(0.9)};
  const double n = double(r.samples), mean_log = r.sum_log / n;
  result.mean_s = r.sum_s / n;
  result.spread = std::sqrt(std::max(0.0, r.sum_log_squared / n - mean_log * mean_log));
}

}  // namespace

void session::add_statistics(select::statistics_dump& dump) const {
  if (rank_ != 0) return;
  const std::unique_lock lock = guard();
  dump.merges += lockstep_.merges();
  dump.merge_cost_s += lockstep_.merges_cost_s();
  for (int i = 0; i < lockstep_.num_contexts(); ++i)
    if (lockstep_.policy_of(i)) dump.contexts.push_back(statistics_of(i));
}

void session::add_contexts_like(const knowledge::problem& of, select::statistics_dump& dump) const {
  if (rank_ != 0) return;
  const std::unique_lock lock = guard();
  for (int i = 0; i < lockstep_.num_contexts(); ++i)
    if (const select::context_key& key = lockstep_.key(i);
        lockstep_.policy_of(i) && name_of(key.op) == of.collective &&
        knowledge::distance(problem_of(key, first_bytes_[std::size_t(i)]), of))
      dump.contexts.push_back(statistics_of(i));
}

// Of a context that has a policy. The guard is held.
select::context_statistics session::statistics_of(int i) const {
  const select::policy* const policy = lockstep_.policy_of(i);
  const select::context_key& key = lockstep_.key(i);
  const auto& arms = known_arms()[std::size_t(key.op)];
  select::context_statistics context{
      .communicator = name_,
      .collective = std::string(name_of(key.op)),
      .num_ranks = num_ranks_,
      .ranks_per_node = hosts_.ranks_per_host,
      .rails = rails(),
      .from_bytes = select::smallest_bytes(key.size_class),
      .to_bytes = 2 * std::max<std::int64_t>(1, select::smallest_bytes(key.size_class)) - 1,
      .first_bytes = first_bytes_[std::size_t(i)],
      .operation = std::string(select::operation_class_names[std::size_t(key.operation)]),
      .policy = policies_[key.policy],
      .current_arm = name_of(arms[std::size_t(lockstep_.incumbent(i))]),
      .reason = policy->reason(),
      .calls = lockstep_.calls(i),
      .arms = {}};
  if (const std::span<const double> skews = lockstep_.skews_s(i); !skews.empty()) {
    context.skew_s = median(skews);
    context.skew_p90_s = quantile(skews, 0.9);
  }
  context.overlapped_share = lockstep_.overlapped_share();
  context.own_s = own_time_.of_call_s();
  if (select::waits_for_all(key.op)) context.core_given_share = lockstep_.core_given_share();

  const std::vector<select::arm_record> records = lockstep_.records(i);
  const std::vector<double> probabilities = policy->probabilities();
  std::size_t index = 0;
  for (const select::arm_prior& prior : policy->arms()) {
    select::arm_statistics a{.arm = name_of(arms[std::size_t(prior.arm)]),
                             .probability = probabilities[index++]};
    for (const select::arm_record& r : records)
      if (r.arm == prior.arm) {
        a.calls = r.calls;
        add_samples(r, a);
      }
    if (!prior.measured_only)
      a.prior = {.mean_s = std::exp(prior.log_seconds), .spread = prior.spread};
    if (const auto posterior = policy->posterior(prior.arm))
      a.posterior = {.mean_s = posterior->mean_s, .spread = posterior->spread};
    const double mean_s = a.mean_s ? *a.mean_s : a.posterior ? a.posterior->mean_s : 0;
    a.time_s = double(a.calls) * mean_s;
    context.time_s += a.time_s;
    context.exploration_cost_s += a.exploration_cost_s;
    context.arms.push_back(std::move(a));
  }
  return context;
}

void session::report_hang(void* self, std::span<const awaited_peer> peers) {
  const auto& s = *static_cast<const session*>(self);
  std::string text = "rank " + std::to_string(s.rank_) + " of " + std::to_string(s.num_ranks_) +
                     " is inside call " + std::to_string(s.call_number_) + " of communicator '" +
                     s.name_ + "' (arm " + name_of(*s.last_arm_) + ") for more than " +
                     detail::show_setting(s.settings_.hang_report) + " s and waits for";
  for (const awaited_peer& p : peers)
    text += " rank " + std::to_string(p.rank) + " (" + std::to_string(p.sends) + " sends, " +
            std::to_string(p.receives) + " receives)";
  s.process_.record(text);
}

void session::trace(const call& c, const select::timed_call& chosen, double started_s,
                    double seconds) {
  try {
    char text[256];
    std::snprintf(text, sizeof text, "%.9f,%s,%lld,%s,%lld,%s,%.6f,%d,%.9f", started_s,
                  name_.c_str(), static_cast<long long>(call_number_), name_of(c.op).data(),
                  static_cast<long long>(c.message_bytes), name_of(*last_arm_).c_str(),
                  lockstep_.share(chosen.context, chosen.arm), chosen.timed ? 1 : 0, seconds);
    process_.trace(text);
  } catch (const std::bad_alloc&) {  // the call was made: it must not fail for want of a line
  }
}

}  // namespace railpass

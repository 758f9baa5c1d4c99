// SPDX-License-Identifier: BSL-1.0
//
// Reports of a session: statistics, lines of the trace, and where it hangs.
#include "lib/runtime/process.hpp"
#include "lib/tuner/arm_statistics.hpp"
#include "lib/tuner/session.hpp"
#include "railpass/base/float_environment.hpp"
#include "railpass/base/settings.hpp"
#include "railpass/knowledge/recall.hpp"

#include <cmath>
#include <cstdio>
#include <new>

namespace railpass::internal {

void session::add_statistics(select::statistics_dump& dump) const {
  if (rank_ != 0) return;
  const own_float_environment own;
  const std::unique_lock lock = joint_.guard();
  const select::lockstep& steps = joint_.steps();
  dump.merges += steps.merges();
  dump.merge_cost_s += steps.merges_cost_s();
  for (int i = 0; i < steps.num_contexts(); ++i)
    if (steps.policy_of(i)) dump.contexts.push_back(statistics_of(i));
}

void session::add_contexts_like(const knowledge::problem& of, select::statistics_dump& dump) const {
  if (rank_ != 0) return;
  const own_float_environment own;
  const std::unique_lock lock = joint_.guard();
  const select::lockstep& steps = joint_.steps();
  // Programs have hundreds of contexts of a few calls: of these nothing is put together.
  const auto tells = [&](int i) {
    const select::policy* const policy = steps.policy_of(i);
    if (!policy) return false;
    const auto taken = policy->posterior(steps.incumbent(i));
    const auto calls = steps.calls(i);
    return is_worth_keeping(calls, taken ? double(calls) * taken->mean_s : 0);
  };
  for (int i = 0; i < steps.num_contexts(); ++i)
    if (const auto key = select::context_key::unpacked(steps.id(i).number);
        name_of(key.op) == of.collective && tells(i) &&
        knowledge::distance(problem_of(key, bytes_of(i)), of))
      dump.contexts.push_back(statistics_of(i));
}

std::int64_t session::bytes_of(int context) const {
  const auto seen = joint_.steps().sizes(context);
  return seen ? std::llround(seen->mean) : first_bytes_[std::size_t(context)];
}

// For a context that has a policy. The caller holds the guard.
select::context_statistics session::statistics_of(int i) const {
  const select::lockstep& steps = joint_.steps();
  const auto key = select::context_key::unpacked(steps.id(i).number);
  const auto& arms = known_arms()[std::size_t(key.op)];
  const arm* const pinned = arms_[key.op].pinned;
  select::context_statistics context{
      .communicator = name_,
      .collective = std::string(name_of(key.op)),
      .num_ranks = num_ranks_,
      .ranks_per_node = nodes_.facts().most_ranks,
      .rails = rails(),
      .first_bytes = bytes_of(i),
      .operation = std::string(select::operation_class_names[std::size_t(key.operation)]),
      .policy = pinned ? "fixed" : policies_[key.policy]};
  if (key.is_of_any_size()) {
    const auto seen = steps.sizes(i);
    context.from_bytes = seen ? std::llround(seen->smallest) : context.first_bytes;
    context.to_bytes = seen ? std::llround(seen->largest) : context.first_bytes;
    context.mean_bytes = seen ? seen->mean : double(context.first_bytes);
  } else if (key.size_class == select::context_key::below_least) {
    context.to_bytes = settings_.min_bytes - 1;
  } else {
    context.from_bytes = select::smallest_bytes(key.size_class);
    context.to_bytes = 2 * std::max<std::int64_t>(1, context.from_bytes) - 1;
  }
  context.own_s = own_time_.of_call_s();
  if (select::waits_for_all(key.op)) context.core_given_share = steps.core_given_share();
  add_arms(
      steps, i,
      [&](int arm) {
        return name_of(pinned && arm == pinned_arm ? *pinned : arms[std::size_t(arm)]);
      },
      context);
  if (steps.asks_size(i))
    context.reason =
        "calls now ask all ranks for their size and have a context for each size class";
  return context;
}

void session::tell_wait(void* self, std::span<const awaited_peer> peers, double waited_s) {
  auto& s = *static_cast<session*>(self);
  try {
    const std::string doing = "arm " + name_of(*s.last_arm_);
    s.joint_.tell_wait(doing, peers, waited_s);
    if (!s.in_memory_) return;
    for (const awaited_peer& p : peers)
      if (s.in_memory_->runs.is_native(p.rank, std::uint64_t(s.call_number_)))
        s.joint_.differ("rank " + std::to_string(p.rank) + " has left call " +
                        std::to_string(s.call_number_) + " to the MPI library, and rank " +
                        std::to_string(s.rank_) + " waits for that rank (" + doing + ")");
  } catch (const std::bad_alloc&) {  // the wait goes on without the report
  }
}

void session::trace(const call& c, const select::timed_call& chosen, double started_s,
                    double seconds) {
  const own_float_environment own;
  try {
    char text[256];
    std::snprintf(text, sizeof text, "%.9f,%s,%lld,%s,%lld,%s,%.6f,%d,%.9f", started_s,
                  name_.c_str(), static_cast<long long>(call_number_), name_of(c.op).data(),
                  static_cast<long long>(c.message_bytes), name_of(*last_arm_).c_str(),
                  joint_.steps().share(chosen.context, chosen.arm), chosen.timed ? 1 : 0, seconds);
    process_.trace(text);
  } catch (const std::bad_alloc&) {  // the call was made: it must not fail for want of a line
  }
}

}  // namespace railpass::internal

// SPDX-License-Identifier: BSL-1.0
//
// Rank 0's view of a collective's context before any measurement: its description and the priors of
// its arms.
#include "lib/runtime/process.hpp"
#include "lib/tuner/checked_call.hpp"
#include "lib/tuner/session.hpp"
#include "railpass/base/settings.hpp"
#include "railpass/select/belief/prior.hpp"
#include "railpass/select/policies.hpp"

#include <algorithm>
#include <functional>

namespace railpass::internal {

std::vector<select::arm_prior> session::priors(const call& c, double bytes) const {
  const select::prior_query query{
      .machine = joint_.machine(),
      .knowledge = joint_.known_profile(),
      .key = {.op = c.op, .size_class = select::size_class_of(std::int64_t(bytes))},
      .num_ranks = num_ranks_,
      .ranks_per_node = nodes_.facts().most_ranks,
      .ranks_per_cache = caches_.facts().most_ranks_or_0(),
      .unit_bytes = c.is_reduction() ? double(c.element_bytes) : 1.0,
      .bytes = bytes};
  auto result = select::priors_of(known_arms()[std::size_t(c.op)], query,
                                  [&](const arm& a) { return eligible_here(*a.base, c); });
  result.shrink_to_fit();  // policies keep them
  return result;
}

context_start session::start_of(const select::context_key& key, const call& c,
                                std::int64_t bytes) const {
  const arm_table::handling& how = arms_[key.op];
  const std::string& policy = policies_[key.policy];
  const bool is_below_least = key.size_class == select::context_key::below_least;
  context_start start{
      .calls = {.of = {.collective = std::string(name_of(key.op)),
                       .operation =
                           std::string(select::operation_class_names[std::size_t(key.operation)]),
                       .bytes = bytes},
                .policy = how.pinned ? "fixed" : policy,
                .name_of =
                    [pinned = how.pinned, arms = how.arms](int number) {
                      return name_of(pinned && number == pinned_arm ? *pinned : arms[number]);
                    },
                .is_of_any_size = key.is_of_any_size(),
                .watches_cores = select::waits_for_all(key.op)},
      .policy = is_below_least ? "native" : policy,
      .may_check = may_check(key),
      .may_wait = may_wait(key)};
  tuned_context& calls = start.calls;
  if (is_below_least) {
    calls.to_bytes = settings_.min_bytes - 1;
  } else if (!calls.is_of_any_size) {
    calls.octave = key.size_class;
    calls.from_bytes = select::smallest_bytes(key.size_class);
    calls.to_bytes = 2 * std::max<std::int64_t>(1, calls.from_bytes) - 1;
  }
  const auto know_one = [&](select::arm_prior only) {
    only.measured_only = true;
    start.priors = [only](double) { return std::vector{only}; };
  };
  if (how.pinned) {
    // Only timed. An arm that cannot run is replaced by native in each call, and here, too.
    const bool native = arm_for(c, *how.pinned).base->is_native();
    start.policy = "fixed";
    start.fixed_arm = native ? select::native_arm : pinned_arm;
    know_one({.arm = *start.fixed_arm, .native = native});
  } else if (is_excluded(*how.arms[select::native_arm].base, c)) {
    start.policy = "fixed";
    start.fixed_arm = fastest_own_arm(c, bytes).value_or(select::native_arm);
    know_one({.arm = *start.fixed_arm, .native = start.fixed_arm == select::native_arm});
  } else if (select::require_policy(start.policy).is_native_only) {
    know_one({.arm = select::native_arm, .native = true});
  } else {
    // A copy, as later merges ask about calls of any size. Nothing reads the buffers of the copy.
    start.priors = [this, c](double of_bytes) { return priors(c, of_bytes); };
  }
  return start;
}

std::optional<int> session::fastest_own_arm(const call& c, std::int64_t bytes) const {
  std::vector<select::arm_prior> own = priors(c, double(bytes));
  std::erase_if(own, [&](const select::arm_prior& p) {
    return p.native || arms_[c.op].arms[p.arm].base->needs.longest_block;
  });
  const auto fastest = std::ranges::min_element(own, {}, &select::arm_prior::log_seconds);
  return fastest == own.end() ? std::nullopt : std::optional(fastest->arm);
}

// A policy that differs from the usual policy applies from the first call on.
bool session::may_wait(const select::context_key& key) const {
  static const std::string& usual = *new std::string(settings().policy);  // see known_arms()
  return policies_[key.policy] == usual && !arms_[key.op].pinned;
}

select::plan_message session::first_plan(const select::context_key& key, int context, const call& c,
                                         std::int64_t bytes) {
  const paid_work paid(process_);
  process_.say_known_faults(c.op, excludable(c));
  const auto start = [&] { return start_of(key, c, bytes); };
  return joint_.first_plan(context, std::ref(start));
}

void session::decide_at_last(int context, const call& c, std::int64_t bytes) {
  if (!joint_.waits(context) || !process_.may_tune_more()) return;
  const paid_work paid(process_);
  const auto key = select::context_key::unpacked(joint_.steps().id(context).number);
  const auto start = [&] { return start_of(key, c, bytes); };
  joint_.stop_waiting(context, std::ref(start));
}

}  // namespace railpass::internal

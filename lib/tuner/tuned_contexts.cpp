// SPDX-License-Identifier: BSL-1.0
#include "lib/tuner/tuned_contexts.hpp"

#include "lib/files/files.hpp"
#include "lib/rails/names.hpp"
#include "lib/runtime/process.hpp"
#include "lib/tuner/arm_statistics.hpp"
#include "railpass/base/float_environment.hpp"
#include "railpass/base/settings.hpp"
#include "railpass/knowledge/joined.hpp"
#include "railpass/knowledge/recall.hpp"
#include "railpass/knowledge/recalling.hpp"
#include "railpass/select/belief/neighbours.hpp"
#include "railpass/select/belief/prior.hpp"
#include "railpass/select/lockstep/merge_costs.hpp"
#include "railpass/select/policies.hpp"
#include "railpass/select/policy/sized_policy.hpp"
#include "railpass/select/policy/tally.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <utility>

namespace railpass::internal {

namespace {

// For a context that starts while the process' account allows no more tuning.
class undecided_policy final : public select::constant_policy {
 public:
  undecided_policy()
      : constant_policy({{.arm = select::native_arm, .native = true, .measured_only = true}},
                        select::native_arm) {}
  std::string reason() const override {
    return "native until the process' calls have paid for more tuning";
  }
};

}  // namespace

tuned_contexts::tuned_contexts(const settings& values, process& owner, int rank, int num_ranks,
                               std::string subject, std::string communicator,
                               complaint without_policy)
    : joint_lockstep(values, owner, rank, num_ranks, std::move(subject)),
      communicator_(std::move(communicator)),
      without_policy_(std::move(without_policy)) {
  // Never destroyed, because programs make calls in atexit handlers.
  static const machine_model& generic = *new machine_model(select::generic_machine());
  machine_ = &generic;
}

void tuned_contexts::know_machine(const host_counts& hosts, std::string_view rails,
                                  double passed_s) {
  if (rank() != 0) return;
  if (num_ranks() == 1) return steps().expect({.spread_s = 0, .at_once_s = 0});
  const own_float_environment own;
  ranks_per_node_ = hosts.ranks_per_host;
  owner().note_hosts(hosts.num_hosts);
  try {
    rails_ = rails_mark(rails);
    profile_ = owner().read_profile(values().profile, hosts.num_hosts, rails_);
    if (profile_) machine_ = &profile_->machine;
  } catch (const std::bad_alloc&) {  // the machine stays unknown
  }
  steps().expect(select::expected_merge_costs(machine(), num_ranks(), ranks_per_node_), passed_s,
                 &owner().account());
}

// ---- first plans

void tuned_contexts::complain(std::string_view before, std::string_view problem,
                              std::string_view after) {
  try {
    owner().record(std::string(before).append(problem).append(after));
  } catch (const std::bad_alloc&) {  // the other ranks wait
  }
}

context_start tuned_contexts::described(const describing& describe) const {
  context_start s = describe();
  knowledge::problem& of = s.calls.of;
  of.num_ranks = num_ranks();
  of.ranks_per_node = ranks_per_node_;
  of.kind = knowledge::kind_of(communicator_);
  of.rails = rails_;
  return s;
}

select::plan_message tuned_contexts::first_plan(int context, const describing& describe) {
  const own_float_environment own;
  try {
    context_start s = described(describe);
    const bool waits = s.may_wait && !owner().may_tune_more();
    std::unique_ptr<select::policy> chosen =
        waits ? std::make_unique<undecided_policy>() : policy_of(s, context);
    const std::unique_lock lock = guard();
    contexts_.resize(std::size_t(context) + 1);
    led_context& c = contexts_[std::size_t(context)] = {std::move(s.calls)};
    const select::plan_message plan = steps().lead(context, std::move(chosen), s.may_check);
    c.waits = waits;
    return plan;
  } catch (const error& problem) {
    complain(without_policy_.before, problem.what(), without_policy_.after);
  } catch (const std::bad_alloc&) {
    complain(without_policy_.before, "no memory for a policy", without_policy_.after);
  }
  const std::unique_lock lock = guard();
  return steps().lead(context, nullptr);
}

void tuned_contexts::stop_waiting(int context, const describing& describe) {
  const own_float_environment own;
  contexts_[std::size_t(context)].waits = false;
  try {
    std::unique_ptr<select::policy> chosen = policy_of(described(describe), context);
    const std::unique_lock lock = guard();
    // A policy that has learnt is kept unless it lacks an arm, or has one that is lost.
    const select::policy* const before = steps().policy_of(context);
    if (!before || !std::ranges::equal(before->arms(), chosen->arms(), {}, &select::arm_prior::arm,
                                       &select::arm_prior::arm))
      steps().change_policy(context, std::move(chosen));
  } catch (const error& problem) {
    complain("", problem.what(), "; the context keeps its policy");
  } catch (const std::bad_alloc&) {  // the context keeps its policy
  }
}

void tuned_contexts::leave_out(int context, int arm) {
  const select::policy* const policy = steps().policy_of(context);
  if (policy &&
      std::ranges::find(policy->arms(), arm, &select::arm_prior::arm) != policy->arms().end())
    contexts_[std::size_t(context)].waits = true;
}

std::unique_ptr<select::policy> tuned_contexts::policy_of(const context_start& s,
                                                          int context) const {
  const tuned_context& c = s.calls;
  select::policy_input plain{.priors = s.priors(double(c.of.bytes)),
                             .baseline = c.baseline,
                             .seed = std::uint64_t(values().seed) + std::uint64_t(context),
                             .all_wait = steps().id(context).waits == select::waiting::for_all,
                             .says_worth = values().summary || !values().stats.empty(),
                             .pass_exponent = values().pass_exponent,
                             .fixed_arm = s.fixed_arm};
  if (s.fixed_arm || select::require_policy(s.policy).is_native_only)
    return select::make_policy(s.policy, std::move(plain));
  double octaves_away = std::numeric_limits<double>::infinity();
  if (const int other = nearest_context(c); other >= 0) {
    const led_context& nearest = contexts_[std::size_t(other)];
    octaves_away = std::abs(*nearest.octave - *c.octave);
    const auto there = s.priors(double(nearest.of.bytes));
    const std::unique_lock lock = guard();
    select::correct_by_neighbour(
        plain.priors, [&](int arm) { return steps().policy_of(other)->posterior(arm); }, there,
        octaves_away);
  }
  std::vector<select::arm_prior> known = recalled(s, plain.priors, octaves_away);
  std::unique_ptr<select::policy> chosen;
  if (known == plain.priors) {
    chosen = select::make_policy(s.policy, plain);
  } else {
    select::policy_input input = plain;
    input.priors = std::move(known);
    chosen = std::make_unique<knowledge::recalling_policy>(
        select::make_policy(s.policy, std::move(input)),
        [name = s.policy, plain] { return select::make_policy(name, plain); });
  }
  return c.is_of_any_size ? policy_of_all_sizes(s, std::move(plain), std::move(chosen))
                          : std::move(chosen);
}

// The context of another size with the most similar arms; -1 if no context has learnt enough.
int tuned_contexts::nearest_context(const tuned_context& c) const {
  constexpr std::int64_t enough_calls = 30;
  int nearest = -1, least = select::most_octaves + 1;
  for (int i = 0; c.octave && i < int(contexts_.size()); ++i) {
    const led_context& other = contexts_[std::size_t(i)];
    if (!other.octave || other.of.collective != c.of.collective ||
        other.of.operation != c.of.operation || other.policy != c.policy || other.waits)
      continue;
    const int octaves = std::abs(*other.octave - *c.octave);
    if (octaves == 0 || octaves >= least || steps().calls(i) < enough_calls ||
        !steps().policy_of(i))
      continue;
    nearest = i;
    least = octaves;
  }
  return nearest;
}

// Priors with knowledge of earlier runs and other communicators. Otherwise `plain`: also if another
// context of this run is at least as close as that knowledge. The guard is not held.
std::vector<select::arm_prior> tuned_contexts::recalled(const context_start& s,
                                                        const std::vector<select::arm_prior>& plain,
                                                        double octaves_away) const {
  const tuned_context& c = s.calls;
  std::vector<select::arm_prior> priors = plain;
  if (const std::optional<knowledge::experience> known = owner().recall(c.of)) {
    // All sizes of a class share a context.
    const double octaves =
        select::size_class_of(known->of.bytes) == select::size_class_of(c.of.bytes)
            ? 0
            : *knowledge::distance(known->of, c.of);
    if (octaves < octaves_away) {
      priors = s.priors(double(c.of.bytes));
      knowledge::correct_by_experience(
          priors, c.name_of, *known, s.priors(double(known->of.bytes)), octaves,
          knowledge::days_between(known->last_at, files::utc_now()).value_or(0));
    }
  }
  if (c.kind && !c.kind->features.empty())
    knowledge::predict_from_near(priors, owner().recall_near({c.of, *c.kind, s.distance}),
                                 c.name_of);
  return priors;
}

// Parts for other sizes are made in merges, under the guard, after the call.
std::unique_ptr<select::policy> tuned_contexts::policy_of_all_sizes(
    const context_start& s, select::policy_input plain,
    std::unique_ptr<select::policy> first) const {
  plain.priors = {};
  const auto make = [name = s.policy, priors = s.priors, plain = std::move(plain)](
                        double part_bytes, const select::sized_policy::part& nearest) {
    select::policy_input input = plain;
    input.priors = priors(part_bytes);
    const double octaves = select::octaves_between(part_bytes, nearest.bytes);
    if (octaves <= select::most_octaves)
      select::correct_by_neighbour(
          input.priors, [&](int arm) { return nearest.its->posterior(arm); }, priors(nearest.bytes),
          octaves);
    return select::make_policy(name, std::move(input));
  };
  return std::make_unique<select::sized_policy>(std::move(first), double(s.calls.of.bytes),
                                                double(values().min_bytes), make);
}

// ---- reports

void tuned_contexts::add_own_time(double seconds) {
  const std::unique_lock lock = guard();
  own_time_.add(seconds);
}

void tuned_contexts::add_statistics(select::statistics_dump& dump) const {
  if (rank() != 0) return;
  const own_float_environment own;
  const std::unique_lock lock = guard();
  dump.merges += steps().merges();
  dump.merge_cost_s += steps().merges_cost_s();
  for (int i = 0; i < int(contexts_.size()); ++i)
    if (steps().policy_of(i)) dump.contexts.push_back(statistics_of(i));
}

void tuned_contexts::add_contexts_like(const knowledge::problem& of,
                                       select::statistics_dump& dump) const {
  if (rank() != 0) return;
  const own_float_environment own;
  const std::unique_lock lock = guard();
  for (int i = 0; i < int(contexts_.size()); ++i) {
    if (contexts_[std::size_t(i)].of.collective != of.collective || !is_worth_telling(i)) continue;
    knowledge::problem here = contexts_[std::size_t(i)].of;
    here.bytes = bytes_of(i);
    if (knowledge::distance(here, of)) dump.contexts.push_back(statistics_of(i));
  }
}

// Programs have hundreds of contexts of a few calls: of these nothing is put together. A context
// that has waited until now must not recall its own calls of native.
bool tuned_contexts::is_worth_telling(int i) const {
  const select::policy* const policy = steps().policy_of(i);
  if (!policy || policy->arms().size() < 2) return false;
  const auto taken = policy->posterior(steps().incumbent(i));
  const auto calls = steps().calls(i);
  return is_worth_keeping(calls, taken ? double(calls) * taken->mean_s : 0);
}

// Adds near contexts only, because all contexts would take longer than a call.
void tuned_contexts::add_near(const knowledge::near_search& wanted,
                              std::vector<knowledge::neighbour>& found) const {
  if (rank() != 0) return;
  const own_float_environment own;
  const std::unique_lock lock = guard();
  std::vector<std::pair<knowledge::nearness, int>> near;
  for (int i = 0; i < int(contexts_.size()); ++i) {
    const tuned_context& c = contexts_[std::size_t(i)];
    if (!c.kind || !steps().policy_of(i)) continue;
    if (const auto away = knowledge::near(c.of, *c.kind, wanted)) near.emplace_back(*away, i);
  }
  std::ranges::stable_sort(near, {}, [](const auto& one) { return one.first.distance; });
  near.resize(std::min(near.size(), knowledge::most_near));
  for (const auto& [away, i] : near) {
    found.push_back({.distance = away.distance, .octaves = away.octaves});
    for (const select::arm_record& r : steps().records(i)) {
      if (r.some_s.empty()) continue;
      found.back().known.arms.push_back({.arm = contexts_[std::size_t(i)].name_of(r.arm),
                                         .calls = r.calls,
                                         .times = times_of(r)});
    }
  }
}

// The mean size of the context's calls if merges have reported sizes, else the first call's size.
std::int64_t tuned_contexts::bytes_of(int context) const {
  const auto seen = steps().sizes(context);
  return seen ? std::llround(seen->mean) : contexts_[std::size_t(context)].of.bytes;
}

// For a context that has a policy. The caller holds the guard.
select::context_statistics tuned_contexts::statistics_of(int i) const {
  const led_context& c = contexts_[std::size_t(i)];
  select::context_statistics told{.communicator = communicator_,
                                  .collective = c.of.collective,
                                  .num_ranks = c.of.num_ranks,
                                  .ranks_per_node = c.of.ranks_per_node,
                                  .rails = c.of.rails,
                                  .from_bytes = c.from_bytes,
                                  .to_bytes = c.to_bytes,
                                  .first_bytes = bytes_of(i),
                                  .operation = c.of.operation,
                                  .baseline = c.baseline,
                                  .policy = c.policy};
  if (c.is_of_any_size) {
    const auto seen = steps().sizes(i);
    told.from_bytes = seen ? std::llround(seen->smallest) : told.first_bytes;
    told.to_bytes = seen ? std::llround(seen->largest) : told.first_bytes;
    told.mean_bytes = seen ? seen->mean : double(told.first_bytes);
  }
  told.own_s = own_time_.of_call_s();
  if (c.watches_cores) told.core_given_share = steps().core_given_share();
  add_arms(steps(), i, c.name_of, told);
  if (steps().asks_size(i))
    told.reason = "calls now ask all ranks for their size and have a context for each size class";
  return told;
}

}  // namespace railpass::internal

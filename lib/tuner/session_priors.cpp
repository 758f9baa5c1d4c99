// SPDX-License-Identifier: BSL-1.0
//
// Rank 0's beliefs before any measurement: the machine, priors of arms, and first plans of
// contexts.
#include "lib/files/files.hpp"
#include "lib/runtime/process.hpp"
#include "lib/tuner/session.hpp"
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
#include <optional>
#include <utility>

namespace railpass::internal {

namespace {

std::vector<select::arm_prior> native_alone() {
  return {{.arm = select::native_arm, .native = true, .measured_only = true}};
}

// For a context that starts while the process' account allows no more tuning.
class undecided_policy final : public select::constant_policy {
 public:
  undecided_policy() : constant_policy(native_alone(), select::native_arm) {}
  std::string reason() const override {
    return "native until the process' calls have paid for more tuning";
  }
};

}  // namespace

void session::know_machine(double passed_s) {
  if (rank_ != 0) return;
  const own_float_environment own;
  try {
    process_.note_hosts(nodes_.facts().num_nodes);
    profile_ = process_.read_profile(settings_.profile, nodes_.facts().num_nodes, rails());
    if (profile_) machine_ = profile_->machine;
  } catch (const std::bad_alloc&) {  // the machine stays unknown
  }
  joint_.steps().expect(
      select::expected_merge_costs(machine_, num_ranks_, nodes_.facts().most_ranks), passed_s,
      &process_.account());
}

std::string session::rails() const {
  return over_rails_ ? rails_mark(over_rails_->rail.names()) : "";
}

knowledge::problem session::problem_of(const select::context_key& key, std::int64_t bytes) const {
  return {.collective = std::string(name_of(key.op)),
          .operation = std::string(select::operation_class_names[std::size_t(key.operation)]),
          .num_ranks = num_ranks_,
          .ranks_per_node = nodes_.facts().most_ranks,
          .kind = knowledge::kind_of(name_),
          .rails = rails(),
          .bytes = bytes};
}

std::vector<select::arm_prior> session::priors(const select::context_key& key, const call& c,
                                               double bytes) const {
  const select::prior_query query{.machine = machine_,
                                  .knowledge = profile_,
                                  .key = key,
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

// The context of another size with the most similar arms; -1 if no context has learnt enough. Rank
// 0.
int session::nearest_context(const select::context_key& key) const {
  constexpr std::int64_t enough_calls = 30;
  int nearest = -1, least = select::most_octaves + 1;
  for (int i = 0; i < int(first_bytes_.size()); ++i) {
    const auto other = select::context_key::unpacked(joint_.steps().id(i).number);
    const int octaves = std::abs(int(other.size_class) - int(key.size_class));
    if (octaves == 0 || octaves >= least || other.op != key.op ||
        other.operation != key.operation || other.policy != key.policy ||
        joint_.steps().calls(i) < enough_calls || !joint_.steps().policy_of(i) || is_undecided(i))
      continue;
    nearest = i;
    least = octaves;
  }
  return nearest;
}

// A policy that starts with knowledge of earlier runs. Null if another context of this run is at
// least as close as that knowledge.
std::unique_ptr<select::policy> session::policy_with_knowledge(const select::context_key& key,
                                                               const call& c, std::int64_t bytes,
                                                               const select::policy_input& plain,
                                                               double octaves_away) const {
  const knowledge::problem here = problem_of(key, bytes);
  const std::optional<knowledge::experience> known = process_.recall(here);
  if (!known) return nullptr;
  // All sizes of a class share a context.
  const double octaves = select::size_class_of(known->of.bytes) == select::size_class_of(bytes)
                             ? 0
                             : *knowledge::distance(known->of, here);
  if (octaves >= octaves_away) return nullptr;
  select::policy_input input = plain;
  input.priors = priors(key, c, double(bytes));
  knowledge::correct_by_experience(
      input.priors, known_arms()[std::size_t(key.op)], *known,
      priors(key, c, double(known->of.bytes)), octaves,
      knowledge::days_between(known->last_at, files::utc_now()).value_or(0));
  const std::string& name = policies_[key.policy];
  return std::make_unique<knowledge::recalling_policy>(
      select::make_policy(name, std::move(input)),
      [name, plain] { return select::make_policy(name, plain); });
}

// Only times the arm. An arm that cannot run is replaced by native in each call, and here, too.
std::unique_ptr<select::policy> session::policy_of_pinned(const arm& pinned, const call& c,
                                                          select::policy_input input) const {
  const bool native = pinned.base->is_native() || !eligible_here(*pinned.base, c);
  input.fixed_arm = native ? select::native_arm : pinned_arm;
  input.priors = {{.arm = *input.fixed_arm, .native = native, .measured_only = true}};
  return select::make_policy("fixed", std::move(input));
}

select::plan_message session::lead(int context, std::int64_t bytes,
                                   std::unique_ptr<select::policy> chosen) {
  const std::unique_lock lock = joint_.guard();
  first_bytes_.resize(std::size_t(context) + 1);
  first_bytes_[std::size_t(context)] = bytes;
  return joint_.steps().lead(context, std::move(chosen));
}

std::unique_ptr<select::policy> session::policy_for(const select::context_key& key, int context,
                                                    const call& c, std::int64_t bytes) const {
  select::policy_input input{.priors = {},
                             .seed = std::uint64_t(settings_.seed) + std::uint64_t(context),
                             .all_wait = select::waits_for_all(key.op),
                             .says_worth = settings_.summary || !settings_.stats.empty(),
                             .pass_exponent = settings_.pass_exponent};
  if (const arm* const pinned = arms_[key.op].pinned)
    return policy_of_pinned(*pinned, c, std::move(input));
  const std::string name =
      key.size_class == select::context_key::below_least ? "native" : policies_[key.policy];
  if (select::require_policy(name).is_native_only) {
    input.priors = native_alone();
    return select::make_policy(name, std::move(input));
  }
  input.priors = priors(key, c, double(bytes));
  const int other = key.is_of_any_size() ? -1 : nearest_context(key);
  const auto nearest =
      other < 0 ? key : select::context_key::unpacked(joint_.steps().id(other).number);
  const double octaves_away = other < 0 ? std::numeric_limits<double>::infinity()
                                        : std::abs(int(nearest.size_class) - int(key.size_class));
  if (other >= 0) {
    const auto there = priors(nearest, c, double(first_bytes_[std::size_t(other)]));
    const std::unique_lock lock = joint_.guard();
    select::correct_by_neighbour(
        input.priors, [&](int arm) { return joint_.steps().policy_of(other)->posterior(arm); },
        there, octaves_away);
  }
  std::unique_ptr<select::policy> chosen =
      policy_with_knowledge(key, c, bytes, input, octaves_away);
  if (!chosen) chosen = select::make_policy(name, input);
  if (!key.is_of_any_size()) return chosen;
  return policy_of_all_sizes(key, std::move(input), std::move(chosen), bytes);
}

// Parts for other sizes are made in merges, under the guard, after the call. The call does not
// change which arms are eligible.
std::unique_ptr<select::policy> session::policy_of_all_sizes(const select::context_key& key,
                                                             select::policy_input plain,
                                                             std::unique_ptr<select::policy> first,
                                                             std::int64_t bytes) const {
  plain.priors = {};
  call any;
  any.op = key.op;
  const auto make = [this, key, any, plain = std::move(plain)](
                        double part_bytes, const select::sized_policy::part& nearest) {
    select::policy_input input = plain;
    input.priors = priors(key, any, part_bytes);
    const double octaves = select::octaves_between(part_bytes, nearest.bytes);
    if (octaves <= select::most_octaves)
      select::correct_by_neighbour(
          input.priors, [&](int arm) { return nearest.its->posterior(arm); },
          priors(key, any, nearest.bytes), octaves);
    return select::make_policy(policies_[key.policy], std::move(input));
  };
  return std::make_unique<select::sized_policy>(std::move(first), double(bytes),
                                                double(settings_.min_bytes), make);
}

// A policy that differs from the usual policy applies from the first call on.
bool session::may_wait(const select::context_key& key) const {
  static const std::string& usual = *new std::string(settings().policy);  // see known_arms()
  return policies_[key.policy] == usual && !arms_[key.op].pinned;
}

select::plan_message session::first_plan(const select::context_key& key, int context, const call& c,
                                         std::int64_t bytes) {
  const own_float_environment own;
  const paid_work paid(process_);
  // The other ranks wait for a plan, so this function must return a plan.
  try {
    if (process_.may_tune_more() || !may_wait(key))
      return lead(context, bytes, policy_for(key, context, c, bytes));
    undecided_.push_back(context);
    return lead(context, bytes, std::make_unique<undecided_policy>());
  } catch (const error& problem) {
    process_.record(std::string(problem.what()) +
                    "; calls of this kind and size go to the MPI library");
  } catch (const std::bad_alloc&) {
    process_.record("no memory for a policy; calls of this kind and size go to the MPI library");
  }
  std::erase(undecided_, context);
  const std::unique_lock lock = joint_.guard();
  return joint_.steps().lead(context, nullptr);
}

void session::decide_at_last(int context, const call& c, std::int64_t bytes) {
  if (!is_undecided(context) || !process_.may_tune_more()) return;
  const own_float_environment own;
  const paid_work paid(process_);
  std::erase(undecided_, context);
  try {
    const auto key = select::context_key::unpacked(joint_.steps().id(context).number);
    std::unique_ptr<select::policy> chosen = policy_for(key, context, c, bytes);
    const std::unique_lock lock = joint_.guard();
    joint_.steps().change_policy(context, std::move(chosen));
  } catch (const error& problem) {
    process_.record(std::string(problem.what()) + "; the context stays native");
  } catch (const std::bad_alloc&) {  // the context stays native
  }
}

}  // namespace railpass::internal

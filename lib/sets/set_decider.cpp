// SPDX-License-Identifier: BSL-1.0
#include "lib/sets/set_decider.hpp"

#include "lib/call/inside.hpp"
#include "lib/files/files.hpp"
#include "lib/runtime/process.hpp"
#include "lib/runtime/text_hash.hpp"
#include "lib/tuner/arm_statistics.hpp"
#include "railpass/base/float_environment.hpp"
#include "railpass/knowledge/joined.hpp"
#include "railpass/knowledge/near.hpp"
#include "railpass/knowledge/recall.hpp"
#include "railpass/knowledge/recalling.hpp"
#include "railpass/select/belief/attributes.hpp"
#include "railpass/select/belief/prior.hpp"
#include "railpass/select/lockstep/merge_costs.hpp"
#include "railpass/select/policies.hpp"

#include <algorithm>
#include <map>
#include <new>
#include <utility>

namespace railpass::internal {

namespace {

// An attribute's values as numbers: the values, or the index of their first appearance.
std::vector<std::vector<double>> numbers_of(const set_definition& set) {
  std::vector<std::vector<double>> result(set.versions.size());
  for (std::size_t x = 0; x < set.attributes.size(); ++x) {
    const auto is_number = [&](const set_definition::version& v) {
      return v.values[x].is_number();
    };
    const bool numbers = std::ranges::all_of(set.versions, is_number);
    std::map<std::string, double> places;
    for (std::size_t v = 0; v < set.versions.size(); ++v) {
      const attribute_value& value = set.versions[v].values[x];
      const double place = places.try_emplace(value.text(), double(places.size())).first->second;
      result[v].push_back(numbers ? value.number() : place);
    }
  }
  return result;
}

}  // namespace

set_decider::set_decider(MPI_Comm comm, const settings& values, process& owner, std::string subject,
                         std::string region)
    : process_(owner),
      settings_(values),
      subject_(std::move(subject)),
      region_(std::move(region)),
      communicator_(name_of_communicator(comm)) {
  PMPI_Comm_rank(comm, &rank_);
  PMPI_Comm_size(comm, &num_ranks_);
}

void set_decider::begin(MPI_Comm comm) {
  if (num_ranks_ == 1) {
    if (settings_.enable) make_part();
    if (joint_) know_machine();
    times_pinned_ = settings_.summary || !settings_.stats.empty();
    return;
  }
  beginning by(comm, settings_, process_, subject_);
  by.make_part(true, true, [this] { make_part(); });
  auto refused = by.agree();
  if (!refused) refused = take_place(by);
  if (refused) joint_.reset();
  if (refused && refused->error_code != MPI_SUCCESS)
    throw error(subject_ + ": the ranks have different settings, or MPI fails (error " +
                std::to_string(refused->error_code) + ")");
}

void set_decider::make_part() {
  joint_ = std::make_unique<joint_lockstep>(settings_, process_, rank_, num_ranks_, subject_);
}

std::optional<beginning::refusal> set_decider::take_place(beginning& by) {
  times_pinned_ = by.agreed.all(agreement::says_worth);
  const auto refused = by.take_place(*joint_);
  if (!refused) know_machine();
  return refused;
}

void set_decider::know_machine() {
  if (joint_->rank() != 0) return;
  const own_float_environment own;
  if (joint_->num_ranks() == 1) {
    joint_->steps().expect({.spread_s = 0, .at_once_s = 0});
    return;
  }
  select::merge_costs expected;
  try {
    const base_lane& lane = joint_->lane();
    hosts_ = count_hosts(*lane.of().hosts, lane.ranks(), joint_->num_ranks());
    process_.note_hosts(hosts_.num_hosts);
    const profile* const known = process_.read_profile(settings_.profile, hosts_.num_hosts, "");
    expected = select::expected_merge_costs(known ? known->machine : select::generic_machine(),
                                            joint_->num_ranks(), hosts_.ranks_per_host);
  } catch (const std::bad_alloc&) {  // no costs are expected then
  }
  joint_->steps().expect(expected, 0, &process_.account());
}

// ---- calls

void set_decider::check() const {
  if (joint_->is_gone())
    throw error(
        subject_ +
        ": a version threw an exception on this rank or another rank, which has left its calls");
}

void set_decider::begin_call() {
  check();
  const bool merges = joint_->begin_call();
  check();
  if (!merges) return;
  const inside here;
  ++round_;
  joint_->merge_steps();
  check();
}

// A hash of the context's definition, so that ranks that differ notice.
std::uint32_t set_decider::number_of(const set_context& c) const {
  return select::mix(0, text_hash().add(c.of->name).add(kind_of(c)).add(c.policy).value());
}

void set_decider::prepare(const set_context& wanted) {
  contexts_.reserve(contexts_.size() + 1);
  ids_.reserve(ids_.size() + 1);
  prepared_number_ = number_of(wanted);
  prepared_ = wanted;
}

int set_decider::context_of(const set_context& wanted) {
  const auto known = std::ranges::find(contexts_, wanted);
  if (known != contexts_.end()) return int(known - contexts_.begin());

  const bool is_prepared = prepared_ == wanted;
  std::uint32_t number = is_prepared ? prepared_number_ : number_of(wanted);
  while (std::ranges::find(ids_, number, &select::context_id::number) != ids_.end()) ++number;
  const select::context_id id{
      number, joint_->num_ranks() == 1 ? select::waiting::for_all : select::waiting::for_some};
  const select::timed_call first = joint_->next_call(id);
  if (first.context < 0) return nearest_context(wanted);
  {
    const auto lock = joint_->guard();
    if (is_prepared)
      contexts_.push_back(std::move(*prepared_));
    else
      contexts_.push_back(wanted);
    ids_.push_back(id);
  }
  const inside here;
  // A failure means that a rank has left.
  joint_->begin_context(first.context,
                        joint_->rank() == 0 ? first_plan(first.context) : select::plan_message{});
  check();
  return first.context;
}

// The same on all ranks, although their mathematical functions may round differently.
int set_decider::nearest_context(const set_context& wanted) const {
  constexpr double rounding = 1e-9;
  const own_float_environment own;
  int nearest = -1;
  double least = 0;
  for (int i = 0; i < int(contexts_.size()); ++i) {
    const set_context& c = contexts_[std::size_t(i)];
    if (c.of != wanted.of || c.shape != wanted.shape || c.policy != wanted.policy ||
        c.without != wanted.without)
      continue;
    const auto away = knowledge::distance(c.features, wanted.features, wanted.distance);
    if (!away || (nearest >= 0 && *away >= least - rounding)) continue;
    nearest = i;
    least = *away;
  }
  return nearest;
}

set_choice set_decider::next_call(int context) {
  return {joint_->next_call(ids_[std::size_t(context)]), round_};
}

int set_decider::incumbent(int context) const {
  const auto lock = joint_->guard();
  return joint_->steps().native_for_good() ? select::native_arm
                                           : joint_->steps().incumbent(context);
}

void set_decider::record(const set_choice& chosen, double started_s, double ended_s) {
  if (chosen.round == round_) joint_->record(chosen.call, started_s, ended_s, false, {});
}

double set_decider::share(int context, int version) const {
  const own_float_environment own;
  const auto lock = joint_->guard();
  return joint_->steps().share(context, version);
}

int set_decider::settled(int context) const {
  const auto lock = joint_->guard();
  if (joint_->steps().native_for_good()) return select::native_arm;
  return joint_->steps().is_settled(context) ? joint_->steps().incumbent(context) : -1;
}

void set_decider::leave_others() {
  if (joint_ && joint_->num_ranks() > 1) joint_->leave_others();
}

void set_decider::leave() {
  if (joint_) joint_->leave();
}

// ---- beliefs of rank 0

knowledge::problem set_decider::problem_of(const set_context& c) const {
  return {.collective = c.of->name,
          .operation = kind_of(c),
          .num_ranks = joint_->num_ranks(),
          .ranks_per_node = hosts_.ranks_per_host,
          .kind = knowledge::kind_of(communicator_),
          .rails = "",
          .bytes = 0};
}

std::unique_ptr<select::policy> set_decider::make_policy(int context) const {
  const set_context& c = contexts_[std::size_t(context)];
  select::policy_input plain{.priors = select::arms_of_versions(numbers_of(*c.of)),
                             .seed = std::uint64_t(settings_.seed) + std::uint64_t(context),
                             .all_wait = joint_->num_ranks() == 1,
                             .says_worth = settings_.summary || !settings_.stats.empty(),
                             .pass_exponent = settings_.pass_exponent};
  const std::string name = policy_of(c);
  for (std::size_t v = 0; v < c.lags.size(); ++v) plain.priors[v].lag = c.lags[v];
  std::erase_if(plain.priors, [&](const select::arm_prior& a) { return !c.can_take(a.arm); });
  const auto version = [&](int arm) -> const std::string& {
    return c.of->versions[std::size_t(arm)].name;
  };
  if (c.pinned >= 0) {
    plain.fixed_arm = c.pinned;
    return select::make_policy(name, std::move(plain));
  }
  select::policy_input input = plain;
  const auto known = process_.recall(problem_of(c));  // the guard is not held
  if (known)
    knowledge::remember_times(
        input.priors, *known, version,
        knowledge::days_between(known->last_at, files::utc_now()).value_or(0));
  if (!c.features.empty())
    knowledge::predict_from_near(input.priors, process_.recall_near(problem_of(c), c.distance),
                                 version);
  if (input.priors == plain.priors) return select::make_policy(name, std::move(input));
  return std::make_unique<knowledge::recalling_policy>(
      select::make_policy(name, std::move(input)),
      [name, plain] { return select::make_policy(name, plain); });
}

select::plan_message set_decider::first_plan(int context) {
  const own_float_environment own;
  // The other ranks wait for a plan, so this function must return a plan.
  std::unique_ptr<select::policy> chosen;
  try {
    chosen = make_policy(context);
    const auto lock = joint_->guard();
    return joint_->steps().lead(context, std::move(chosen));
  } catch (const error& problem) {
    process_.record(subject_ + ": " + problem.what() + "; the first version is used");
  } catch (const std::bad_alloc&) {
    process_.record(subject_ + ": no memory for a policy; the first version is used");
  }
  const auto lock = joint_->guard();
  return joint_->steps().lead(context, nullptr);
}

// ---- statistics and knowledge

void set_decider::add_statistics(select::statistics_dump& dump) const {
  if (!joint_ || joint_->rank() != 0) return;
  const own_float_environment own;
  const auto lock = joint_->guard();
  dump.merges += joint_->steps().merges();
  dump.merge_cost_s += joint_->steps().merges_cost_s();
  for (int i = 0; i < int(contexts_.size()); ++i)
    if (joint_->steps().policy_of(i)) dump.contexts.push_back(statistics_of(i));
}

void set_decider::add_contexts_like(const knowledge::problem& of,
                                    select::statistics_dump& dump) const {
  const auto kind = kind_here(of);
  if (!kind) return;
  const own_float_environment own;
  const auto lock = joint_->guard();
  for (int i = 0; i < int(contexts_.size()); ++i) {
    const set_context& c = contexts_[std::size_t(i)];
    if (joint_->steps().policy_of(i) && c.of->name == of.collective && c.shape == kind->shape &&
        c.features == kind->features)
      dump.contexts.push_back(statistics_of(i));
  }
}

// Adds near contexts only, because all contexts would take longer than a call.
void set_decider::add_near(const knowledge::problem& of, const feature_distance& by,
                           std::vector<knowledge::neighbour>& found) const {
  const auto kind = kind_here(of);
  if (!kind) return;
  const own_float_environment own;
  const auto lock = joint_->guard();
  std::vector<std::pair<double, int>> near;
  for (int i = 0; i < int(contexts_.size()); ++i) {
    const set_context& c = contexts_[std::size_t(i)];
    if (!joint_->steps().policy_of(i) || c.of->name != of.collective || c.shape != kind->shape)
      continue;
    if (const auto away = knowledge::distance(c.features, kind->features, by))
      near.emplace_back(*away, i);
  }
  std::ranges::sort(near);
  near.resize(std::min(near.size(), knowledge::most_near));
  for (const auto& [away, i] : near) {
    const set_context& c = contexts_[std::size_t(i)];
    found.push_back(
        {.distance = away, .octaves = knowledge::octaves_larger(c.features, kind->features)});
    for (const select::arm_record& r : joint_->steps().records(i)) {
      select::arm_statistics a;
      add_samples(r, a);
      if (!a.quantiles) continue;
      found.back().known.arms.push_back({.arm = c.of->versions[std::size_t(r.arm)].name,
                                         .calls = r.calls,
                                         .samples = a.samples,
                                         .mean_s = *a.mean_s,
                                         .spread = *a.spread,
                                         .low_s = a.quantiles->low_s,
                                         .median_s = a.quantiles->median_s,
                                         .high_s = a.quantiles->high_s});
    }
  }
}

// The kind of a problem, if calls here could have this kind.
std::optional<knowledge::set_kind> set_decider::kind_here(const knowledge::problem& of) const {
  if (!joint_ || joint_->rank() != 0 || of.num_ranks != joint_->num_ranks() ||
      of.ranks_per_node != hosts_.ranks_per_host)
    return std::nullopt;
  auto kind = knowledge::set_kind::of(of.operation);
  if (kind && kind->region != region_) kind.reset();
  return kind;
}

// For a context that has a policy. The caller holds the guard.
select::context_statistics set_decider::statistics_of(int i) const {
  const set_context& c = contexts_[std::size_t(i)];
  select::context_statistics told{.communicator = communicator_,
                                  .collective = c.of->name,
                                  .num_ranks = joint_->num_ranks(),
                                  .ranks_per_node = hosts_.ranks_per_host,
                                  .operation = kind_of(c),
                                  .policy = policy_of(c)};
  told.baseline = c.of->versions.front().name;
  add_arms(
      joint_->steps(), i, [&](int arm) { return c.of->versions[std::size_t(arm)].name; }, told);
  // Policies call the baseline native.
  constexpr std::string_view native = "native";
  for (std::size_t at = 0; (at = told.reason.find(native, at)) != std::string::npos;
       at += told.baseline.size())
    told.reason.replace(at, native.size(), told.baseline);
  return told;
}

}  // namespace railpass::internal

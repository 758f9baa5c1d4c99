// SPDX-License-Identifier: BSL-1.0
#include "lib/sets/set_decider.hpp"

#include "lib/call/inside.hpp"
#include "lib/runtime/process.hpp"
#include "railpass/base/float_environment.hpp"
#include "railpass/base/hash.hpp"
#include "railpass/select/policy/policy.hpp"

#include <algorithm>
#include <functional>
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
    std::map<std::string, double> numbers_of_texts;
    for (std::size_t v = 0; v < set.versions.size(); ++v) {
      const attribute_value& value = set.versions[v].values[x];
      const double number =
          numbers_of_texts.try_emplace(value.text(), double(numbers_of_texts.size())).first->second;
      result[v].push_back(numbers ? value.number() : number);
    }
  }
  return result;
}

// Priors of the versions that the calls can take, without times.
std::vector<select::arm_prior> priors_of(const set_context& c) {
  std::vector<select::arm_prior> priors = select::arms_of_versions(numbers_of(*c.of));
  for (std::size_t v = 0; v < c.lags.size(); ++v) priors[v].lag = c.lags[v];
  std::erase_if(priors, [&](const select::arm_prior& a) { return !c.can_take(a.arm); });
  return priors;
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
    take(joint_ ? select::turn::agreement : select::turn::refusal);
    times_pinned_ = settings_.summary || !settings_.stats.empty();
    return;
  }
  set_up by(comm, settings_, process_, subject_);
  by.make_part(true, true, [this] { make_part(); });
  auto refused = by.agree();
  if (!refused) refused = take_resources(by);
  if (refused) {
    joint_.reset();
    take(select::turn::refusal);
  }
  if (refused && refused->error_code != MPI_SUCCESS)
    throw error(subject_ + ": the ranks have different settings, or MPI fails (error " +
                std::to_string(refused->error_code) + ")");
}

void set_decider::make_part() {
  joint_ = std::make_unique<tuned_contexts>(
      settings_, process_, rank_, num_ranks_, subject_, communicator_,
      tuned_contexts::complaint{subject_ + ": ", "; the first version is used"});
}

std::optional<set_up::refusal> set_decider::take_resources(set_up& by) {
  times_pinned_ = by.agreed.all(agreement::says_worth);
  const auto refused = by.take_resources(*joint_);
  if (!refused) {
    know_machine();
    take(select::turn::agreement);
  }
  return refused;
}

void set_decider::know_machine() {
  host_counts hosts;
  try {
    if (rank_ == 0 && num_ranks_ > 1)
      hosts = count_hosts(*joint_->lane().of().hosts, joint_->lane().ranks(), num_ranks_);
  } catch (const std::bad_alloc&) {  // the counts stay 1
  }
  joint_->know_machine(hosts, "", 0);
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
  return mix(0, text_hash().add(c.of->name).add(kind_of(c).text()).add(c.policy).value());
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
  const auto start = [&] { return start_of(contexts_.back()); };
  joint_->begin_context(first.context, joint_->rank() == 0
                                           ? joint_->first_plan(first.context, std::ref(start))
                                           : select::plan_message{});
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
  take(select::turn::end);
  if (joint_) joint_->leave();
}

// ---- contexts as rank 0 sees them

context_start set_decider::start_of(const set_context& c) const {
  const knowledge::set_kind kind = kind_of(c);
  const set_definition& set = *c.of;
  const std::string policy = c.pinned >= 0       ? "fixed"
                             : !c.policy.empty() ? c.policy
                                                 : settings_.policy;
  // One after the other: GCC 12 frees parts of a nested initializer twice if memory runs out.
  context_start start;
  start.calls.of.collective = set.name;
  start.calls.of.operation = kind.text();
  start.calls.kind = kind;
  start.calls.policy = policy;
  start.calls.baseline = set.versions.front().name;
  start.calls.name_of = [&set](int v) { return set.versions[std::size_t(v)].name; };
  start.policy = policy;
  start.priors = [&c](double) { return priors_of(c); };
  start.distance = c.distance;
  if (c.pinned >= 0) start.fixed_arm = c.pinned;
  return start;
}

}  // namespace railpass::internal

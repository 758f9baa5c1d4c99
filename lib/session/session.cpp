// SPDX-License-Identifier: BSL-1.0
#include "lib/session/session.hpp"

#include "lib/rails/agreement.hpp"
#include "lib/rails/registry.hpp"
#include "lib/session/communicator_rails.hpp"
#include "lib/session/datatype.hpp"
#include "lib/session/judgement.hpp"
#include "lib/session/process.hpp"
#include "lib/session/verify.hpp"
#include "railpass/base/settings.hpp"
#include "railpass/select/merge_costs.hpp"
#include "railpass/select/neighbours.hpp"
#include "railpass/select/policies.hpp"
#include "railpass/select/prior.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <new>
#include <sched.h>
#include <stdexcept>
#include <sys/resource.h>
#include <utility>

namespace railpass {

namespace {

// Settings that only concern one process or its host; all others must be equal on all ranks.
constexpr std::array private_settings{std::string_view{"log"},         std::string_view{"stats"},
                                      std::string_view{"trace"},       std::string_view{"profile"},
                                      std::string_view{"summary"},     std::string_view{"rails"},
                                      std::string_view{"hang_report"}, std::string_view{"strict"}};

std::uint64_t hash_of_settings(const settings& values) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ std::uint8_t(c)) * 1099511628211u;
    hash = (hash ^ 0xffu) * 1099511628211u;
  };
  for (const setting_description& d : describe(values))
    if (std::ranges::find(private_settings, d.name) == private_settings.end()) {
      add(d.name);
      add(d.value);
    }
  return hash;
}

bool is_commutative(const call& c) {
  if (!c.is_reduction()) return true;
  int commutative = 0;
  PMPI_Op_commutative(c.operation, &commutative);
  return commutative != 0;
}

select::operation_class class_of(const call& c) {
  if (!c.is_reduction()) return select::operation_class::none;
  if (is_builtin(c.operation)) return select::operation_class::builtin;
  return is_commutative(c) ? select::operation_class::user_commutative
                           : select::operation_class::user_ordered;
}

// `reproducible`: the same algorithm for the same size on every machine and in every run. Where
// nothing else is said, the first one that keeps rank order.
const arm& reproducible_arm(std::span<const arm> arms, const call& c) {
  if (c.op == collective::all_reduce) {
    static constexpr std::int64_t from_bytes = 64 << 10;
    const bool large = c.message_bytes >= from_bytes && is_commutative(c);
    const std::string_view name = large ? "reduce_scatter_allgather" : "recursive_doubling";
    return *std::ranges::find(arms, name, [](const arm& a) { return a.base->name; });
  }
  const auto keeps_order = [](const arm& a) {
    return !a.base->is_native() && !a.base->needs.commutative && !a.base->needs.power_of_two;
  };
  const auto found = std::ranges::find_if(arms, keeps_order);
  return found == arms.end() ? arms.front() : *found;
}

// Where blocks differ in length all ranks know all lengths, or no arm has scratch memory.
double longest_block_bytes(const call& c, int num_ranks) {
  if (describe(c.op).lengths != block_lengths::known) return double(c.message_bytes) / num_ranks;
  std::int64_t longest = 0, all = 0;
  for (int i = 0; i < num_ranks; ++i) {
    longest = std::max<std::int64_t>(longest, c.receive.counts[i]);
    all += c.receive.counts[i];
  }
  return double(c.message_bytes) * (double(longest) / double(all));
}

std::string name_of_communicator(MPI_Comm comm) {
  char name[MPI_MAX_OBJECT_NAME + 1] = "";
  int length = 0;
  PMPI_Comm_get_name(comm, name, &length);
  return {name, std::size_t(length)};
}

// How often the calling thread's core was given to another thread, asked for or not.
long times_core_given() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return used.ru_nvcsw + used.ru_nivcsw;
}

std::vector<std::string_view> words(std::string_view list) {
  std::vector<std::string_view> result;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (comma != 0) result.push_back(list.substr(0, comma));
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
  }
  return result;
}

}  // namespace

// Takes a lane that is free on all ranks; -1: they must look again. Threads of several ranks may
// come in different orders, and take each other's.
int session::take_lane(const agreement& agreed, const base_place& place, MPI_Comm user) {
  const int number = agreed.common_lane();
  const bool took = number >= 0 && bases::of_process().take(*place.of, number);
  if (agreed.all(agreement::one_thread)) return took ? number : -1;
  int all_took = took ? 1 : 0;
  if (PMPI_Allreduce(MPI_IN_PLACE, &all_took, 1, MPI_INT, MPI_MIN, user) == MPI_SUCCESS && all_took)
    return number;
  if (took) bases::of_process().give_back(*place.of, number);
  return -1;
}

session::outcome session::create(MPI_Comm user, const settings& values, process& owner, bool pays,
                                 bool asked_for, double passed_s) {
  bases& all_bases = bases::of_process();
  all_bases.settle();
  int rank = 0, num_ranks = 0;
  PMPI_Comm_rank(user, &rank);
  PMPI_Comm_size(user, &num_ranks);
  int threads = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&threads);
  const bool has_threads = threads == MPI_THREAD_MULTIPLE;

  agreement agreed;
  agreed.set(agreement::lenient, !values.strict);
  agreed.set(agreement::enabled, values.enable);
  agreed.set(agreement::pays, pays);
  agreed.set(agreement::no_device, true);
  agreed.set(agreement::names_no_rails, true);
  agreed.set(agreement::one_world, true);
  agreed.set(agreement::one_thread, !has_threads);
  agreed.set(agreement::has_room_for_base, all_bases.may_make_one());
  agreed.set(agreement::may_make_communicators,
             asked_for || !(has_threads || all_bases.none_inside()));
  std::unique_ptr<session> made;
  base_place place;
  bases::materials for_base;
  try {
    agreed.set_settings(hash_of_settings(values));
    agreed.set(agreement::no_device, values.gpu != "native" || !has_device_driver());
    const bool rails = !rails_mark(values.rails).empty();
    agreed.set(agreement::names_rails, rails);
    agreed.set(agreement::names_no_rails, !rails);
    if (values.enable && pays) {
      made.reset(new session(values, owner, rank, num_ranks, name_of_communicator(user)));
      place = all_bases.find(user);
      if (place.of) {
        agreed.offer(place.of->id, all_bases.free_lanes(*place.of));
      } else {
        agreed.set(agreement::one_world, bases::is_one_world(user));
        for_base = bases::prepare(num_ranks);
      }
    }
    agreed.set(agreement::made_its_part, true);
  } catch (const std::bad_alloc&) {
  } catch (const std::exception& problem) {
    owner.record(std::string("a communicator is not tuned: ") + problem.what());
  }
  if (const int failure = agreed.agree(user)) return {nullptr, failure};
  if (!agreed.same_settings()) {
    owner.record(
        "the ranks of a communicator have different settings (RAILPASS_ variables must be the same "
        "on all ranks); it is not tuned");
    return {nullptr, agreed.all(agreement::lenient) ? MPI_SUCCESS : MPI_ERR_OTHER};
  }
  if (!agreed.all(agreement::enabled)) return {};
  if (!agreed.all(agreement::pays)) return {nullptr, MPI_SUCCESS, true};
  if (!agreed.all(agreement::no_device)) {
    owner.record(
        "a communicator is not tuned: a rank may have memory of a GPU (RAILPASS_GPU=native)");
    return {};
  }
  if (!agreed.all(agreement::made_its_part)) {
    owner.record("a communicator is not tuned: not all ranks could make their part of it");
    return {};
  }
  if (!agreed.all(agreement::one_world)) {
    owner.record("a communicator is not tuned: not all of its ranks were started together");
    return {};
  }
  if (agreed.no_base()) {
    if (!agreed.all(agreement::may_make_communicators) ||
        !agreed.all(agreement::has_room_for_base)) {
      owner.record(
          "a communicator is not tuned yet: railpass makes none for its messages inside a "
          "collective where MPI_THREAD_MULTIPLE or MPI_Comm_idup is used, nor more than " +
          std::to_string(bases::most) +
          "; railpass::mpi::start_tuning(MPI_COMM_WORLD) at the program's start makes one for all, "
          "and so does railpass run");
      return {nullptr, MPI_SUCCESS, true};
    }
    if (const int failure = all_bases.make(user, std::move(for_base), place)) {
      owner.record("a communicator is not tuned: MPI makes none for its messages, error " +
                   std::to_string(failure));
      return {};
    }
    // All lanes of a new one are free.
    agreed.offer(place.of->id, all_bases.free_lanes(*place.of));
  } else if (!agreed.same_base()) {
    return {nullptr, MPI_SUCCESS, true};  // another thread of some ranks is just making one
  }
  if (agreed.common_lane() < 0) {
    owner.record("a communicator is not tuned: there are " + std::to_string(base::num_lanes) +
                 " others already");
    return {};
  }
  const int number = take_lane(agreed, place, user);
  if (number < 0) return {nullptr, MPI_SUCCESS, true};
  made->connect(std::move(place), number);
  const bool all_name_rails = agreed.all(agreement::names_rails);
  try {
    if (!all_name_rails && !agreed.all(agreement::names_no_rails))
      throw error("not all ranks name rails (RAILPASS_RAILS)");
    if (all_name_rails && !agreed.all(agreement::may_make_communicators))
      throw error(
          "rails are not opened inside a collective where MPI_THREAD_MULTIPLE or MPI_Comm_idup is "
          "used; railpass::mpi::start_tuning opens them");
    if (all_name_rails) {
      const auto messages = rails_for_collectives(user, owner, values.rails, values.strategy);
      on_all(user, [&] { made->run_over(messages); });
    }
  } catch (const error& problem) {  // on all ranks
    made->over_rails_.reset();
    owner.record("collectives of communicator '" + made->name_ +
                 "' use the MPI library's messages: " + problem.what());
  }
  made->know_machine(passed_s);
  return {std::move(made), MPI_SUCCESS};
}

void session::run_over(std::shared_ptr<lane> messages) {
  over_rails_ = std::make_unique<rails_of_schedules>(std::move(messages));
}

session::session(const settings& values, process& owner, int rank, int num_ranks, std::string name)
    : process_(owner),
      settings_(values),
      lockstep_({.max_contexts = int(std::min<std::int64_t>(values.contexts, 1 << 16))}, rank,
                num_ranks),
      rank_(rank),
      num_ranks_(num_ranks),
      lane_(std::make_shared<base_lane>()),
      name_(std::move(name)),
      merges_(std::make_unique<merge_messages>(rank, num_ranks)),
      policies_{values.policy} {
  merges_->connect(lane_);
  const arm binomial = parse_arm(collective::broadcast, "binomial");
  plan_broadcast_ = binomial.base->build(
      {.rank = rank, .num_ranks = num_ranks, .commutative = true, .result_rank = 0},
      binomial.values);
  const auto all = words(values.collectives);
  for (std::size_t i = 0; i < num_collectives; ++i) {
    handlings_[i].arms = known_arms()[i].data();
    handlings_[i].tuned =
        values.collectives == "all" || std::ranges::find(all, name_of(collective(i))) != all.end();
  }
  for (const std::string_view word : all)
    if (word != "all" && !find_collective(word))
      owner.record("RAILPASS_COLLECTIVES: there is no collective '" + std::string(word) + "'");
  for (const std::string_view word : words(values.use)) {
    const std::size_t colon = word.find(':');
    const auto op = find_collective(word.substr(0, colon));
    if (!op || colon == std::string_view::npos)
      throw error("RAILPASS_USE: '" + std::string(word) + "' is not collective:arm");
    handlings_[std::size_t(*op)].pinned =
        &pinned_by_setting_.emplace_back(parse_arm(*op, word.substr(colon + 1)));
  }
  select::require_policy(values.policy);
  if (values.gpu != "stage" && values.gpu != "native")
    throw error("RAILPASS_GPU='" + values.gpu + "': expected stage or native");
  int threads = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&threads);
  is_shared_ = threads == MPI_THREAD_MULTIPLE && rank == 0;
  if (rank == 0) machine_ = select::generic_machine();
  known_arms();
}

const std::array<std::vector<arm>, num_collectives>& session::known_arms() {
  // Never destroyed, as all that calls need: programs make some in atexit handlers.
  static const auto& arms = *[] {
    auto* const result = new std::array<std::vector<arm>, num_collectives>;
    for (std::size_t i = 0; i < num_collectives; ++i) (*result)[i] = arms_of(collective(i));
    return result;
  }();
  return arms;
}

void session::connect(base_place place, int lane_number) {
  lane_->become(std::move(place), lane_number);
  over_mpi_.emplace(*lane_);
  // First plans must not fail on one rank alone.
  try {
    select::plan_message message{};
    over_mpi_->runs.prepare(plan_broadcast_, binding_of(message));
  } catch (const std::bad_alloc&) {  // maybe there is memory when it is needed
  }
}

void session::know_machine(double passed_s) {
  if (rank_ != 0) return;
  try {
    hosts_ = count_hosts(lane_->of().hosts, lane_->ranks(), num_ranks_);
    process_.note_hosts(hosts_.num_hosts);
    profile_ = process_.read_profile(settings_.profile, hosts_.num_hosts,
                                     over_rails_ ? rails_mark(over_rails_->rail.names()) : "");
    if (profile_) machine_ = profile_->machine;
  } catch (const std::bad_alloc&) {  // nothing is known of it, then
  }
  lockstep_.expect(select::expected_merge_costs(machine_, num_ranks_, hosts_.ranks_per_host),
                   passed_s);
}

[[gnu::hot]] int session::run(const call& c, const call_options& options) {
  ++call_number_;
  if (begins_merge_steps()) merge_steps();
  if (gone_) return raise(c, MPI_ERR_OTHER);
  const handling& how = handlings_[std::size_t(c.op)];
  const bool has_option = !options.arm.empty() || options.segment_bytes >= 0;
  if (lockstep_.native_for_good()) return run_arm(c, how.arms[select::native_arm]);
  if (const arm* const fixed = has_option ? pinned_by(options, c) : how.pinned)
    return run_arm(c, *fixed);
  if (!how.tuned || (c.has_size() && c.message_bytes < settings_.min_bytes))
    return run_arm(c, how.arms[select::native_arm]);
  if (settings_.reproducible && c.is_reduction())
    return run_arm(c, reproducible_arm(known_arms()[std::size_t(c.op)], c));
  return run_tuned(c, options.policy.empty() ? std::uint8_t{0} : policy_index(options.policy));
}

[[gnu::hot]] int session::run_tuned(const call& c, std::uint8_t policy) {
  const select::context_key key{.op = c.op,
                                .size_class = select::size_class_of(c.message_bytes),
                                .operation = class_of(c),
                                .policy = policy};
  select::timed_call chosen = next_call(key);
  if (chosen.needs_first_plan) {
    if (const int failure = begin_context(key, chosen.context, c)) return raise(c, failure);
    chosen = next_call(key);
  }
  const arm& a = handlings_[std::size_t(c.op)].arms[chosen.arm];
  return chosen.timed || chosen.notes_end || process_.tracing() ? run_watched(c, a, chosen)
                                                                : run_arm(c, a);
}

[[gnu::hot]] select::timed_call session::next_call(const select::context_key& key) {
  const std::unique_lock lock = guard();
  return lockstep_.next_call(key);
}

int session::begin_context(const select::context_key& key, int context, const call& c) {
  select::plan_message message{};
  if (rank_ == 0) message = first_plan(key, context, c);
  if (const int failure = receive_first_plan(message)) return failure;
  const std::unique_lock lock = guard();
  lockstep_.adopt(context, message);
  return MPI_SUCCESS;
}

int session::run_watched(const call& c, const arm& a, const select::timed_call& chosen) {
  const long given_before = chosen.watches_core ? times_core_given() : 0;
  const double started_s = process_.clock()();
  const int code = run_arm(c, a);
  const double ended_s = process_.clock()(), seconds = ended_s - started_s;
  if (code == MPI_SUCCESS) {
    const bool gave_core = chosen.watches_core && times_core_given() != given_before;
    const std::unique_lock lock = guard();
    if (chosen.timed)
      lockstep_.record(chosen, seconds, lockstep_.gap_s(chosen, started_s), gave_core);
    if (chosen.notes_end) lockstep_.note_end(chosen, ended_s);
  }
  if (process_.tracing()) trace(c, chosen, started_s, seconds);
  return code;
}

// A failure of this rank's part, reported as MPI reports one of its collective.
int session::raise(const call& c, int code) {
  if (code == MPI_SUCCESS) return code;
  fail();
  PMPI_Comm_call_errhandler(c.comm, code);
  return code;
}

// What this rank did not send others wait for, in this call or in a later one: so all are told, and
// every schedule fails from now on wherever that is known. Arms that are the MPI library's own go
// on meanwhile, because ranks that know nothing yet are inside them. The next merge says to all
// ranks in the same call that nothing is tuned any more.
void session::fail() {
  if (failed_) return;
  failed_ = true;
  lane_->lose();
  lane_->tell_all(base_lane::trouble::failed);
  const std::unique_lock lock = guard();
  lockstep_.give_up();
}

// No call of this communicator is made any more that others would have to take part in.
void session::leave_others() {
  fail();
  if (std::exchange(gone_, true)) return;
  lane_->tell_all(base_lane::trouble::gone);
}

void session::keep_on() {
  // Others may wait for what this rank still has to send over rails.
  if (over_rails_ && !failed_ && over_rails_->rail.poll({}) < 0) {
    record_failure_of_rails();
    fail();
  }
  const base_lane::trouble what = lane_->look();
  if (what == base_lane::trouble::none) return;
  if (!failed_)
    process_.record("another rank has failed in a call of communicator '" + name_ +
                    "': its collectives fail until all ranks know, and are the MPI library's own "
                    "from then on");
  fail();
  gone_ = gone_ || what == base_lane::trouble::gone;
}

bool session::eligible_here(const algorithm& a, const call& c) const {
  // Reductions are cut between elements, everything else between bytes.
  const std::int64_t units = c.is_reduction() ? c.message_bytes / c.element_bytes : c.message_bytes;
  return eligible(a, {.num_ranks = num_ranks_, .units = units, .commutative = is_commutative(c)}) &&
         a.scratch.bytes(double(c.message_bytes),
                         a.scratch.blocks > 0 ? longest_block_bytes(c, num_ranks_) : 0) <=
             double(settings_.scratch_limit);
}

[[gnu::hot]] int session::run_arm(const call& c, const arm& a) {
  // Known equally on all ranks, so all of them fall back.
  const bool native = a.base->is_native() || !eligible_here(*a.base, c);
  const arm& runs = native ? handlings_[std::size_t(c.op)].arms[select::native_arm] : a;
  last_arm_ = &runs;
  if (native) return run_native(c);
  if (failed_) return raise(c, MPI_ERR_OTHER);
  if (!has_device_driver()) return run_on_host(c, runs);
  if (const int failure = code_of([&] { return host_copies_.prepare(c, place()); }))
    return raise(c, failure);
  if (const int failure = run_on_host(host_copies_.on_host(), runs)) return failure;
  return raise(c, host_copies_.finish());
}

// The error handler has been called if this fails.
int session::run_on_host(const call& c, const arm& a) {
  const auto run = [&](const call& same) {
    return raise(same, code_of([&] { return run_schedule(same, a); }));
  };
  return settings_.verify ? run_verified(c, place(), process_, run) : run(c);
}

// What this rank's part of a call throws is a failure like any other. All but what is known to be
// railpass' own comes out of an operation of the user's, and is the user's.
template <class Work>
int session::code_of(const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  } catch (const error& problem) {
    process_.record(problem.what());
    return MPI_ERR_INTERN;
  } catch (...) {
    fail();
    throw;
  }
  return MPI_ERR_NO_MEM;
}

int session::run_schedule(const call& c, const arm& a) {
  const bool commutative = is_commutative(c);
  const promise_traits traits = c.traits();
  // In rank order virtual ranks are the physical ones, and the result is passed on to the root.
  const bool in_order = traits.reduces && !commutative;
  const int root = traits.rooted && !in_order ? c.root : 0;
  const shape s{.rank = wrap(rank_ - root, num_ranks_),
                .num_ranks = num_ranks_,
                .commutative = commutative,
                .result_rank = traits.rooted && in_order ? c.root : 0};
  const std::shared_ptr<const schedule> plan = schedules_.find_or_build(*a.base, a.values, s);
  if (const int failure = buffers_.prepare(c, place(), *plan, root)) return failure;
  const auto look = [](void* self) -> int {
    auto& mine = *static_cast<session*>(self);
    mine.keep_on();
    return mine.failed_ ? MPI_ERR_OTHER : MPI_SUCCESS;
  };
  int code = MPI_SUCCESS;
  if (over_rails_) {
    code = execute(*over_rails_, *plan, buffers_.bound(), look);
    if (!over_rails_->rail.failure().empty()) record_failure_of_rails();
  } else {
    code = execute(*over_mpi_, *plan, buffers_.bound(), look);
  }
  return code == MPI_SUCCESS ? buffers_.finish() : code;
}

template <class Over>
int session::execute(Over& over, const schedule& s, const binding& b, int (*look)(void*)) {
  const wait_watch watch{.clock = process_.clock(),
                         .after_s = settings_.hang_report,
                         .report = report_hang,
                         .look = look,
                         .user_data = this};
  return over.runs.run(s, b, watch);
}

void session::record_failure_of_rails() {
  process_.record("the rails of communicator '" + name_ +
                  "' have failed, its collectives are the MPI library's from now on: " +
                  over_rails_->rail.failure());
}

call_place session::place() const { return {rank_, num_ranks_, process_.datatype_key()}; }

const arm* session::pinned_by(const call_options& options, const call& c) {
  for (const pinned_arm& known : pinned_by_option_)
    if (known.op == c.op && known.text == options.arm &&
        known.segment_bytes == options.segment_bytes)
      return &known.chosen;
  arm chosen = handlings_[std::size_t(c.op)].arms[select::native_arm];
  try {
    if (options.arm.empty())
      throw error("the option segment_bytes needs the option use, which names the algorithm");
    std::string text(options.arm);
    if (options.segment_bytes >= 0)
      text += "+segment_bytes=" + std::to_string(options.segment_bytes);
    chosen = parse_arm(c.op, text);
  } catch (const error& problem) {
    process_.record(std::string(problem.what()) + "; the MPI library's own collective is used");
  }
  if (pinned_by_option_.size() >= max_pinned_options) pinned_by_option_.pop_front();
  pinned_by_option_.push_back({c.op, std::string(options.arm), options.segment_bytes, chosen});
  return &pinned_by_option_.back().chosen;
}

std::uint8_t session::policy_index(std::string_view name) {
  for (std::size_t i = 0; i < policies_.size(); ++i)
    if (policies_[i] == name) return std::uint8_t(i);
  try {
    select::require_policy(name);
    if (policies_.size() > std::numeric_limits<std::uint8_t>::max())
      throw error("too many policies are named in calls");
    const std::unique_lock lock = guard();
    policies_.emplace_back(name);
    return std::uint8_t(policies_.size() - 1);
  } catch (const error& problem) {
    process_.record(std::string(problem.what()) + "; the communicator's policy is used");
    return 0;
  }
}

std::vector<select::arm_prior> session::priors(const select::context_key& key, const call& c,
                                               double bytes) const {
  const select::prior_query query{.machine = machine_,
                                  .knowledge = profile_,
                                  .key = key,
                                  .num_ranks = num_ranks_,
                                  .ranks_per_node = hosts_.ranks_per_host,
                                  .unit_bytes = c.is_reduction() ? double(c.element_bytes) : 1.0,
                                  .bytes = bytes};
  return select::priors_of(known_arms()[std::size_t(c.op)], query,
                           [&](const arm& a) { return eligible_here(*a.base, c); });
}

// The context of another size whose arms are the most alike; -1 if none has learnt enough. Rank 0.
int session::nearest_context(const select::context_key& key) const {
  constexpr std::int64_t enough_calls = 30;
  int nearest = -1, least = select::most_octaves + 1;
  for (int i = 0; i < int(first_bytes_.size()); ++i) {
    const select::context_key& other = lockstep_.key(i);
    const int octaves = std::abs(int(other.size_class) - int(key.size_class));
    if (octaves == 0 || octaves >= least || other.op != key.op ||
        other.operation != key.operation || other.policy != key.policy ||
        lockstep_.calls(i) < enough_calls || !lockstep_.policy_of(i))
      continue;
    nearest = i;
    least = octaves;
  }
  return nearest;
}

select::plan_message session::first_plan(const select::context_key& key, int context,
                                         const call& c) {
  // The others wait for a plan, so there must be one.
  try {
    select::policy_input input{.priors = {},
                               .seed = std::uint64_t(settings_.seed) + std::uint64_t(context),
                               .all_wait = select::waits_for_all(key.op),
                               .says_worth = settings_.summary || !settings_.stats.empty(),
                               .pass_exponent = settings_.pass_exponent};
    input.priors = priors(key, c, double(c.message_bytes));
    if (const int other = nearest_context(key); other >= 0) {
      const auto there = priors(lockstep_.key(other), c, double(first_bytes_[std::size_t(other)]));
      const std::unique_lock lock = guard();
      select::correct_by_neighbour(
          input.priors, *lockstep_.policy_of(other), there,
          std::abs(int(lockstep_.key(other).size_class) - int(key.size_class)));
    }
    auto chosen = select::make_policy(policies_[key.policy], std::move(input));
    const std::unique_lock lock = guard();
    first_bytes_.resize(std::size_t(context) + 1);
    first_bytes_[std::size_t(context)] = c.message_bytes;
    return lockstep_.lead(context, std::move(chosen));
  } catch (const error& problem) {
    process_.record(std::string(problem.what()) + "; the context stays native");
  } catch (const std::bad_alloc&) {
    process_.record("no memory for a policy; the context stays native");
  }
  const std::unique_lock lock = guard();
  return lockstep_.lead(context, nullptr);
}

std::unique_lock<std::mutex> session::guard() const {
  return is_shared_ ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
}

bool session::begins_merge_steps() {
  const std::unique_lock lock = guard();
  return lockstep_.begin_call();
}

void session::merge_steps() {
  {
    const std::unique_lock lock = guard();
    lockstep_.begin_steps(process_.clock()());
  }
  bool mismatch = false;
  const int code = merges_->make_due_steps(
      lockstep_, is_shared_ ? &mutex_ : nullptr,
      [this](MPI_Request& r, MPI_Status& s) { return wait_for(r, s); }, mismatch);
  note_merge(code, mismatch);
  const std::unique_lock lock = guard();
  lockstep_.end_steps(process_.clock()());
}

void session::leave() {
  if (!merges_) return;
  bool mismatch = false;
  merges_->leave(lockstep_, is_shared_ ? &mutex_ : nullptr, mismatch);
  note_merge(MPI_SUCCESS, mismatch);
  // Others may still make calls here, and wait in them.
  if (failed_) lane_->tell_all(base_lane::trouble::gone);
  try {
    bases::of_process().settle();
    bases::of_process().keep(std::move(merges_));
  } catch (const std::bad_alloc&) {  // what comes is dropped, and the number is not used again
    lane_->lose();
  }
}

void session::note_merge(int code, bool mismatch) {
  if (code != MPI_SUCCESS) leave_others();
  if (mismatch && !failed_)
    process_.record(
        "the ranks of a communicator did not make the same calls through railpass; it is not "
        "tuned any more");
}

// By MPI's messages also where calls go over rails: these may have failed. A rank whose schedules
// fail passes plans on all the same.
int session::receive_first_plan(select::plan_message& message) {
  return execute(*over_mpi_, plan_broadcast_, binding_of(message), [](void* self) -> int {
    auto& mine = *static_cast<session*>(self);
    mine.keep_on();
    return mine.gone_ ? MPI_ERR_OTHER : MPI_SUCCESS;
  });
}

binding session::binding_of(select::plan_message& message) {
  auto* const memory = reinterpret_cast<std::byte*>(message.data());
  return {.input = memory,
          .output = memory,
          .size = {.units = std::int64_t(sizeof message), .unit_bytes = 1}};
}

int session::wait_for(MPI_Request& request, MPI_Status& status) {
  constexpr unsigned tests_per_look = 16;
  unsigned tests = 0;
  for (int done = 0;;) {
    if (const int failure = PMPI_Test(&request, &done, &status)) return failure;
    if (done) return MPI_SUCCESS;
    if (++tests % tests_per_look == 0) {
      keep_on();
      if (gone_) return MPI_ERR_OTHER;
    }
    sched_yield();
  }
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

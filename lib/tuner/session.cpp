// SPDX-License-Identifier: BSL-1.0
#include "lib/tuner/session.hpp"

#include "lib/call/eligibility.hpp"
#include "lib/call/inside.hpp"
#include "lib/runtime/process.hpp"
#include "lib/tuner/checked_call.hpp"
#include "lib/tuner/verify.hpp"
#include "railpass/base/float_environment.hpp"
#include "railpass/base/hash.hpp"
#include "railpass/base/settings.hpp"
#include "railpass/select/policies.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <new>
#include <stdexcept>
#include <sys/resource.h>
#include <utility>

namespace railpass::internal {

namespace {

select::operation_class class_of(const call& c) {
  if (!c.is_reduction()) return select::operation_class::none;
  if (is_builtin(c.operation)) return select::operation_class::builtin;
  return is_commutative(c) ? select::operation_class::user_commutative
                           : select::operation_class::user_ordered;
}

// If blocks differ in length, all ranks know all lengths, or no arm has scratch memory.
double longest_block_bytes(const call& c, int num_ranks) {
  if (describe(c.op).lengths != block_lengths::known) return double(c.message_bytes) / num_ranks;
  std::int64_t longest = 0, all = 0;
  for (int i = 0; i < num_ranks; ++i) {
    longest = std::max<std::int64_t>(longest, c.receive.counts[i]);
    all += c.receive.counts[i];
  }
  return all == 0 ? 0 : double(c.message_bytes) * (double(longest) / double(all));
}

// The packed copies of a call in messages, as call_buffers makes them, as far as all ranks know of
// them: without those of data with holes, and without the block of a reduce_scatter in place, which
// may be so on some ranks alone. `in_order`: blocks lie in the order of
// virtual ranks. Displacements of an all_gatherv are known to their rank alone.
int most_copies(const algorithm& a, const call& c, bool commutative, bool in_order) {
  if (a.is_native()) return 0;
  const promise_traits traits = c.traits();
  if (traits.reduces) return traits.rooted && !commutative && c.root != 0 ? 1 : 0;
  const bool exchanges = describe(c.op).what == promise::blocks_to_blocks;
  const bool tears =
      a.spans_blocks && (!in_order || describe(c.op).lengths == block_lengths::known);
  const bool of_input = exchanges && (tears || c.send.in_place());
  return int(of_input) + int(tears);
}

bool fits(const scratch_formula& scratch, int copies, const call& c, int num_ranks,
          std::int64_t limit) {
  const own_float_environment own;
  const auto message = double(c.message_bytes);
  return copies * message +
             scratch.bytes(message, scratch.blocks > 0 ? longest_block_bytes(c, num_ranks) : 0) <=
         double(limit);
}

// Equal on all ranks.
std::uint64_t number_of(const arm& a) {
  std::uint64_t number = text_hash().add(name_of(a.base->op)).add(a.base->name).value();
  for (const auto value : a.values) number = number * 31 + std::uint64_t(value);
  return number;
}

// How often the kernel gave the calling thread's core to another thread, on request or not.
long times_core_given() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return used.ru_nvcsw + used.ru_nivcsw;
}

}  // namespace

[[gnu::hot, gnu::always_inline]] inline bool session::begin_call(const call& c) {
  joint_.come_to(c.op);
  const bool merges = joint_.begin_call();
  joint_.tell(c);
  watched_.begin(++call_number_, c.op, c.message_bytes);
  if (call_number_ == asks_for_memory_at_) ask_for_memory();
  if (merges) merge_steps();
  return !joint_.is_gone();
}

void session::merge_steps() {
  overhead_timing::give_up();  // merges have a separate account
  if (may_have_device_memory(settings_.gpu)) joint_.steps().find_device();
  joint_.steps().tell_exclusions(exclusions_.lacks_some(process_.exclusions()));
  joint_.merge_steps();
  if (joint_.steps().take_exclusions()) learn_exclusions();
  if (joint_.steps().copies_refused() && in_memory_ && in_memory_->single_copy)
    give_up_single_copies();
}

void session::leave() {
  watched_.leave();
  joint_.leave();
  process_.note_pins_run(pins_run_);
}

void session::give_up_single_copies() {
  in_memory_->single_copy = false;
  recent_.forget_arms();
  say_copies_refused();
}

void session::say_copies_refused() {
  process_.warn("communicator '" + joint_.communicator() +
                "': the kernel no longer lets a rank copy from or to another rank's memory, as a "
                "process has given up privileges or is not dumpable; the ranks copy through shared "
                "memory instead");
}

// Learning and settings choose arms for all other calls; arm_for() then says whether the call is
// eligible for the arm.
bool session::goes_to_mpi(const call& c, const call_options& options) const {
  if (joint_.steps().native_for_good()) return true;
  const arm_table::handling& how = arms_[c.op];
  if (asks_for_arm(options) || how.pinned) return false;
  return !how.tuned || (c.has_size() && c.message_bytes < settings_.min_bytes);
}

[[gnu::hot]] int session::run(const call& c, const call_options& options) {
  if (!begin_call(c)) return raise(c, joint_.failure());
  const arm_table::handling& how = arms_[c.op];
  if (goes_to_mpi(c, options)) return run_arm(c, how.arms[select::native_arm]);
  if (asks_for_arm(options)) {
    const arm_table::asked_arm& asked = arms_.asked_by(options, c.op);
    return run_pinned(c, asked.chosen, asked.number);
  }
  if (how.pinned) return times_pinned_ ? run_tuned(c, 0) : run_pinned(c, *how.pinned, 0);
  if (settings_.reproducible && c.is_reduction()) return run_arm(c, reproducible_arm(c));
  if (plan_) return run_planned(c);
  return run_tuned(c, options.policy.empty() ? std::uint8_t{0} : policy_index(options.policy));
}

int session::run_pinned(const call& c, const arm& a, std::uint64_t asked) {
  if (c.message_bytes <= short_message_bytes) recent_.keep(c, rank_, {}, asked, &a);
  return run_arm(c, a);
}

int session::run_planned(const call& c) {
  const arm* const planned = plan_->find(c.op, class_of(c), c.message_bytes);
  return run_pinned(c, planned ? *planned : arms_[c.op].arms[select::native_arm], 0);
}

[[gnu::hot]] int session::run_tuned(const call& c, std::uint8_t policy) {
  select::context_key key{.op = c.op,
                          .size_class = select::size_class_of(c.message_bytes),
                          .operation = class_of(c),
                          .policy = policy};
  if (describe(c.op).lengths == block_lengths::of_pair) {
    key.size_class = select::context_key::any_size;
    if (joint_.steps().num_contexts() < settings_.contexts && joint_.asks_size(key))
      return run_sized(c, key);
  }
  return run_chosen(key, {key.packed(), arms_[c.op].waits}, c, nullptr);
}

int session::ask_size(const call& c, asked_size& all) {
  std::array<std::uint64_t, 2> largest{std::uint64_t(own_bytes_of(c, rank_, num_ranks_)),
                                       std::uint64_t(longest_block_of(c, num_ranks_))};
  const double began_s = process_.clock()();
  const int failure = joint_.find_largest(largest, "the size of the call");
  all = {.bytes = std::int64_t(largest[0]),
         .longest_block = std::int64_t(largest[1]),
         .took_s = process_.clock()() - began_s};
  return failure;
}

// All ranks learn the size here, so the size may decide as in calls whose size all ranks know.
int session::run_sized(const call& c, select::context_key key) {
  asked_size asked;
  if (const int failure = ask_size(c, asked)) return raise(c, failure);
  key.size_class = asked.bytes < settings_.min_bytes ? select::context_key::below_least
                                                     : select::size_class_of(asked.bytes);
  return run_chosen(key, key, c, &asked);
}

[[gnu::hot]] int session::run_chosen(const select::context_key& key, const select::context_id& id,
                                     const call& c, const asked_size* asked) {
  const arm_table::handling& how = arms_[c.op];
  select::timed_call chosen = joint_.next_call(id);
  if (chosen.needs_first_plan) {
    const std::int64_t bytes = asked ? asked->bytes : bytes_to_expect(c);
    if (const int failure = begin_context(key, chosen.context, c, bytes)) return raise(c, failure);
    chosen = joint_.next_call(id);
  }
  const arm& a = how.pinned ? *how.pinned : how.arms[chosen.arm];
  if (key.policy == 0 && !how.pinned && c.message_bytes <= short_message_bytes)
    recent_.keep(c, rank_, id);
  return is_watched(chosen) ? run_watched(c, a, chosen, asked) : run_arm(c, a, asked);
}

// In a call with another root: assumes that all blocks are as long as this rank's block.
std::int64_t session::bytes_to_expect(const call& c) const {
  if (describe(c.op).lengths != block_lengths::of_pair) return c.message_bytes;
  const std::int64_t own = own_bytes_of(c, rank_, num_ranks_);
  return c.traits().rooted && rank_ != c.root ? own * num_ranks_ : own;
}

bool session::is_watched(const select::timed_call& chosen) const {
  return chosen.timed || chosen.notes_end || chosen.checked || overhead_timing::now() ||
         process_.tracing();
}

[[gnu::hot]] int session::run_again(call& c, recent_call& known) {
  c.message_bytes = known.as.message_bytes;
  c.element_bytes = known.as.element_bytes;
  if (!begin_call(c)) return raise(c, joint_.failure());
  if (known.pinned) {
    const bool gave_up = joint_.steps().native_for_good();
    return run_by(gave_up ? arms_[c.op].arms[select::native_arm] : *known.pinned, c, known);
  }
  const select::timed_call chosen = joint_.next_call(known.context);
  const arm& a = arms_[c.op].arms[chosen.arm];
  return is_watched(chosen) ? run_watched(c, a, chosen, nullptr) : run_by(a, c, known);
}

int session::run_by(const arm& a, const call& c, recent_call& known) {
  if (known.chosen != &a) prepare(known, c, a);
  return known.is_ready ? run_ready(c, known) : run_arm(c, a);
}

void session::prepare(recent_call& known, const call& c, const arm& a) {
  known.chosen = &a;
  known.runs = &arm_for(c, a);
  known.plan = nullptr;
  const algorithm& runs = *known.runs->base;
  known.is_ready = runs.is_native();
  if (known.is_ready) return;
  const node_order* const order = order_for(c, runs);
  try {
    known.plan = schedules_.find_or_build(runs, known.runs->values, shape_of(c, runs, order));
    if (runs.needs.longest_block || has_device_driver() || settings_.verify ||
        c.message_bytes > short_message_bytes || joint_.has_failed() ||
        buffers_.prepare(c, caller(), *known.plan, first_of(c), order) != MPI_SUCCESS)
      return;
    if (std::optional<call_buffers::as_they_are> bound = buffers_.bound_directly()) {
      known.buffers = *bound;
      known.arm_number = number_of(*known.runs);
      known.is_ready = true;
    }
  } catch (const std::exception&) {  // the call then fails, too
  }
}

[[gnu::hot]] int session::run_ready(const call& c, const recent_call& known) {
  last_arm_ = known.runs;
  if (!known.plan) return leave_to_mpi(c);
  if (joint_.has_failed()) return raise(c, joint_.failure());
  // A GPU driver may have been loaded since. Only buffers that were examined are known to be in
  // host memory.
  if (!known.buffers.are_of(c) && has_device_driver()) return run_arm(c, *known.runs);
  buffers_.prepare_again(c, known.buffers);
  buffers_.mark(known.arm_number);
  return raise(c, code_of([&] { return run_bound(*known.plan); }));
}

int session::begin_context(const select::context_key& key, int context, const call& c,
                           std::int64_t bytes) {
  return joint_.begin_context(
      context, rank_ == 0 ? first_plan(key, context, c, bytes) : select::plan_message{});
}

// Other ranks wait while the leader prepares.
void session::prepare_timed(recent_call& known, const call& c, const arm& a) {
  std::optional<paid_work> paid;
  if (rank_ == 0) paid.emplace(process_);
  prepare(known, c, a);
}

int session::run_watched(const call& c, const arm& a, const select::timed_call& chosen,
                         const asked_size* asked) {
  return chosen.checked && kind_of_check(c) != check_kind::none ? run_checked(c, a, chosen, asked)
                                                                : run_timed(c, a, chosen, asked);
}

int session::run_timed(const call& c, const arm& a, const select::timed_call& chosen,
                       const asked_size* asked) {
  // The time of an arm's first call excludes building its schedule. A short call is timed in the
  // form in which it runs after convergence.
  recent_call known;
  if (chosen.timed) prepare_timed(known, c, a);
  const long given_before = chosen.watches_core ? times_core_given() : 0;
  const double came_s = process_.clock()();
  const int code = known.is_ready ? run_ready(c, known) : run_arm(c, a, asked);
  const double ended_s = process_.clock()();
  // Asking is part of the call; the time between asking and the arm belongs to learning.
  const double started_s = asked ? came_s - asked->took_s : came_s, seconds = ended_s - started_s;
  // The time of another arm says nothing about an arm that no call can run any more. Where only
  // some calls cannot run the chosen arm, their times are part of what choosing the arm costs.
  const bool is_replaced =
      chosen.timed && !is_chosen(chosen, a, *known.runs) && is_lost(*a.base, c);
  if (code == MPI_SUCCESS) {
    const bool gave_core = chosen.watches_core && times_core_given() != given_before;
    select::timed_call ran = chosen;
    ran.timed = chosen.timed && !is_replaced;
    if (ran.timed && describe(c.op).lengths == block_lengths::of_pair)
      joint_.note_size(ran, {.bytes = own_bytes_of(c, rank_, num_ranks_),
                             .asked_s = asked ? asked->took_s : -1});
    joint_.record(ran, started_s, ended_s, gave_core,
                  {select::dependence_in(c.op), rank_ == c.root});
  }
  if (rank_ == 0 && is_replaced) joint_.leave_out(chosen.context, chosen.arm);
  if (rank_ == 0) watch_own_time(chosen, seconds);
  if (rank_ == 0 && chosen.timed)
    decide_at_last(chosen.context, c, asked ? asked->bytes : bytes_to_expect(c));
  if (process_.tracing()) trace(c, chosen, started_s, seconds);
  return code;
}

// `a` is a pinned arm also where its context knows that native runs in its place.
bool session::is_chosen(const select::timed_call& chosen, const arm& a, const arm& runs) {
  return chosen.arm == select::native_arm ? runs.base->is_native() : &runs == &a;
}

// Memory and permissions were lost since the context began, or the algorithm was excluded.
bool session::is_lost(const algorithm& a, const call& c) const {
  return (a.needs.shared_memory && !in_memory_) ||
         (a.needs.single_copy && !(in_memory_ && in_memory_->single_copy)) || is_excluded(a, c);
}

// A call that has not converged spends time on learning. After two timed calls, the next call is
// likely to be timed as well.
void session::watch_own_time(const select::timed_call& chosen, double seconds) {
  if (!chosen.timed) {
    if (overhead_timing::now()) overhead_timing::arm_took(seconds, joint_);
    return;
  }
  if (call_number_ > last_timed_call_ + 1) overhead_timing::ask();
  last_timed_call_ = call_number_;
}

// Reports a failure of this rank's part as MPI reports a failure of its collective.
int session::report(const call& c, int code) {
  joint_.fail(code == internal::code_of(own_error::unlike) ? own_error::unlike
                                                           : own_error::rank_failed);
  if (reason_.empty()) explain(joint_.why_unlike());
  const std::string_view told = text_of(code);
  if (!reason_.empty() || !told.empty())
    process_.complain(c.comm, name_of(c.op), reason_.empty() ? told : reason_);
  reason_.clear();
  call_error_handler(c.comm, code);
  return code;
}

bool session::eligible_here(const algorithm& a, const call& c) const {
  // Reductions are cut between elements, other messages between bytes.
  const std::int64_t units = c.is_reduction() ? c.message_bytes / c.element_bytes : c.message_bytes;
  const std::int64_t unit_bytes = c.is_reduction() ? c.element_bytes : 1;
  const bool commutative = is_commutative(c);
  const node_facts& nodes = nodes_.facts();
  const bool one_node = nodes.num_nodes == 1;
  const bool in_order = first_of(c) == 0 && (!nodes.matter() || nodes.in_rank_order);
  const bool in_memory = in_memory_ && !(over_rails_ && one_node);
  return eligible(a, {.num_ranks = num_ranks_,
                      .units = units,
                      .commutative = commutative,
                      .shared_memory = in_memory && unit_bytes <= cell_bytes,
                      .single_copy = in_memory && one_node && in_memory_->single_copy,
                      .nodes = nodes,
                      .caches = caches_.facts()}) &&
         fits(a.scratch, most_copies(a, c, commutative, in_order), c, num_ranks_,
              settings_.scratch_limit) &&
         (a.is_native() || !is_excluded(a, c));
}

void session::exclude(const select::exclusion& e) {
  process_.exclude(e);
  exclusions_.add(e);
  recent_.forget_arms();
}

void session::learn_exclusions() {
  const select::exclusions known = process_.exclusions();
  for (const select::exclusion_words& w : known.all()) exclusions_.add(select::exclusion_of(w));
  (void)unite_exclusions([this](std::uint64_t& word) {
    word = ~word;
    const int failure = joint_.find_largest({&word, 1}, "the exclusions of all ranks");
    word = ~word;
    return failure;
  });
  recent_.forget_arms();
}

select::excludable_call session::excludable(const call& c) const {
  return {.operation = class_of(c),
          .bytes = c.message_bytes,
          .num_ranks = num_ranks_,
          .num_hosts = nodes_.facts().num_nodes};
}

bool session::is_excluded(const algorithm& a, const call& c) const {
  return exclusions_.has(a, excludable(c));
}

void session::say_nothing_is_left(const call& c) const {
  if (rank_ != 0) return;
  try {
    process_.record("communicator '" + joint_.communicator() + "': " + std::string(name_of(c.op)) +
                    " uses the MPI library although it is excluded, because no algorithm of "
                    "railpass can run the call");
  } catch (const std::bad_alloc&) {  // the record is lost
  }
}

const arm& session::arm_for(const call& c, const arm& a) const {
  if (!exclusions_.empty()) return arm_without_exclusion(c, a);
  return a.base->is_native() || eligible_here(*a.base, c) ? a
                                                          : arms_[c.op].arms[select::native_arm];
}

// Ranks without predictions must agree, so the first eligible arm takes native's place.
const arm& session::arm_without_exclusion(const call& c, const arm& a) const {
  const arm& native = arms_[c.op].arms[select::native_arm];
  const auto may_run = [&](const arm& one) {
    return one.base->is_native() ? !is_excluded(*one.base, c) : eligible_here(*one.base, c);
  };
  if (may_run(a)) return a;
  if (joint_.steps().native_for_good() || may_run(native)) return native;
  const std::vector<arm>& arms = known_arms()[std::size_t(c.op)];
  const auto first = std::ranges::find_if(
      arms, [&](const arm& one) { return !one.base->needs.longest_block && may_run(one); });
  if (first != arms.end()) return *first;
  say_nothing_is_left(c);
  return native;
}

// Where padded blocks would need much more memory than blocks of the lengths that the call has, the
// MPI library runs the call: all ranks decide by the same words. The padded copies of input and
// output count as scratch memory.
int session::pad_blocks(const call& c, const arm*& runs, const asked_size* asked) {
  constexpr std::int64_t most_growth = 8, always_fits = 64 * 1024;
  asked_size of_call;
  if (asked)
    of_call = *asked;
  else if (const int failure = ask_size(c, of_call))
    return failure;
  const own_float_environment own;
  padded_bytes_ = call_buffers::padded_bytes(of_call.longest_block);
  const double all = double(padded_bytes_) * num_ranks_;
  if (all > std::max(double(always_fits), double(most_growth) * double(of_call.bytes)) ||
      2 * all + runs->base->scratch.bytes(all, double(padded_bytes_)) >
          double(settings_.scratch_limit))
    runs = &arm_for(c, arms_[c.op].arms[select::native_arm]);
  return MPI_SUCCESS;
}

[[gnu::hot]] int session::run_arm(const call& c, const arm& a, const asked_size* asked) {
  const arm* chosen = &arm_for(c, a);
  if (chosen->base->needs.longest_block)
    if (const int failure = pad_blocks(c, chosen, asked)) return raise(c, failure);
  const arm& runs = *chosen;
  last_arm_ = &runs;
  if (runs.base->is_native()) return leave_to_mpi(c);
  if (&a == arms_[c.op].pinned) pins_run_ |= 1u << unsigned(c.op);
  if (!has_device_driver()) return run_on_host(c, runs);
  // Messages of the call that failed may still write to its copies.
  if (joint_.has_failed()) return raise(c, joint_.failure());
  if (const int failure = code_of([&] { return host_copies_.prepare(c, caller()); }))
    return raise(c, failure);
  if (const int failure = run_on_host(host_copies_.on_host(), runs)) return failure;
  return raise(c, code_of([&] { return host_copies_.finish(); }));
}

// Ranks that wait for this rank in an arm of railpass can thus see that the calls differ.
[[gnu::hot]] int session::leave_to_mpi(const call& c) {
  if (in_memory_) in_memory_->runs.note_native(std::uint64_t(call_number_));
  return run_native(c);
}

// If this fails, the error handler has been called.
int session::run_on_host(const call& c, const arm& a) {
  const auto run = [&](const call& same) {
    if (joint_.has_failed()) return raise(same, joint_.failure());
    return raise(same, code_of([&] { return run_schedule(same, a); }));
  };
  if (!settings_.verify) return run(c);
  return run_verified(c, caller(), process_, run, [&](std::span<std::uint64_t> words) {
    return raise(c, joint_.find_largest(words, "the verification of the result"));
  });
}

// An exception in this rank's part of a call is a failure like any other. Exceptions that railpass
// does not throw come from the user's operation, and belong to the user.
template <class Work>
int session::code_of(const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  } catch (const unlike_calls& problem) {
    explain_unlike(problem.what());
    return internal::code_of(own_error::unlike);
  } catch (const error& problem) {
    explain(problem.what());
    return internal::code_of(own_error::internal);
  } catch (...) {
    joint_.fail();
    throw;
  }
  explain("out of memory");
  return MPI_ERR_NO_MEM;
}

void session::explain_unlike(const std::string& what) {
  explain("rank " + std::to_string(rank_) + " of " + std::to_string(num_ranks_) + " in call " +
          std::to_string(call_number_) + ": " + what);
}

void session::explain(std::string_view reason) {
  try {
    reason_ = reason;
  } catch (const std::bad_alloc&) {  // the error code alone must do
  }
}

// In rank order, virtual ranks are the physical ranks, and the result is passed on to the root.
int session::first_of(const call& c) const {
  const promise_traits traits = c.traits();
  return traits.rooted && (!traits.reduces || is_commutative(c)) ? c.root : 0;
}

// Ranks in the order of nodes, starting with the root's node: algorithms expect neighbours to be
// near, and a mere shift of ranks could tear nodes apart or deal ranks out to nodes in turn. A
// reproducible result does not depend on the placement of ranks. Only algorithms that need caches
// use the order of caches, because other algorithms would copy blocks for little benefit.
const node_order* session::order_for(const call& c, const algorithm& a) {
  if (a.needs.several_caches) {
    caches_.begin_with(first_of(c));
    return &caches_;
  }
  const node_facts& nodes = nodes_.facts();
  if (!nodes.matter()) return nullptr;
  const int first = first_of(c);
  const bool as_they_are = first == 0 && nodes.in_rank_order;
  if (a.needs.max_nodes == 0 && (as_they_are || !takes_any_order(c.op, is_commutative(c)) ||
                                 (settings_.reproducible && c.is_reduction())))
    return nullptr;
  nodes_.begin_with(first);
  return &nodes_;
}

shape session::shape_of(const call& c, const algorithm& a, const node_order* order) const {
  const bool commutative = is_commutative(c);
  const promise_traits traits = c.traits();
  return {
      .rank = order ? order->ranks().virtual_rank(rank_) : wrap(rank_ - first_of(c), num_ranks_),
      .num_ranks = num_ranks_,
      .commutative = commutative,
      .result_rank = traits.rooted && traits.reduces && !commutative ? c.root : 0,
      .nodes = knows_groups(a.needs) ? order->begins() : group_begins{}};
}

int session::run_schedule(const call& c, const arm& a) {
  const node_order* const order = order_for(c, *a.base);
  const std::shared_ptr<const schedule> plan =
      schedules_.find_or_build(*a.base, a.values, shape_of(c, *a.base, order));
  if (const int failure = buffers_.prepare(c, caller(), *plan, first_of(c), order,
                                           a.base->needs.longest_block ? padded_bytes_ : 0))
    return failure;
  buffers_.mark(number_of(a));
  return run_bound(*plan);
}

int session::run_bound(const schedule& s) {
  const auto look = [](void* self) -> int {
    auto& mine = *static_cast<session*>(self);
    mine.joint_.keep_on();
    return mine.has_failed() ? internal::code_of(mine.joint_.failure()) : MPI_SUCCESS;
  };
  const wait_watch watch{.clock = process_.clock(),
                         .after_s = joint_.patience_s(),
                         .report = tell_wait,
                         .look = look,
                         .user_data = this,
                         .progress = &watched_.progress()};
  const halt_watch::calls::inside in_arm(watched_, *last_arm_);
  const int code = s.places > 0 ? run_in_memory(s, watch) : run_by_messages(s, watch);
  return code == MPI_SUCCESS ? buffers_.finish() : code;
}

int session::run_in_memory(const schedule& s, const wait_watch& watch) {
  const int code = in_memory_->runs.run(s, buffers_.bound(), watch);
  if (in_memory_->runs.refuses_copies() && !joint_.steps().refuses_copies()) {
    joint_.steps().refuse_copies();
    say_copies_refused();
  }
  return code;
}

int session::run_by_messages(const schedule& s, const wait_watch& watch) {
  int code = MPI_SUCCESS;
  if (over_rails_) {
    code = run_over_messages(over_rails_->runs, s, watch);
    if (const std::string& unlike = over_rails_->rail.unlike(); !unlike.empty()) {
      explain_unlike(unlike);
    } else if (!over_rails_->rail.failure().empty()) {
      record_failure_of_rails();
      explain("its rails have failed: " + over_rails_->rail.failure());
      if (code != MPI_SUCCESS) code = internal::code_of(own_error::internal);
    }
  } else {
    code = run_over_messages(joint_.over_mpi(), s, watch);
    if (const std::string& unlike = joint_.unlike(); !unlike.empty()) {
      explain_unlike(unlike);
      code = internal::code_of(own_error::unlike);
    }
  }
  return code;
}

template <class Messages>
int session::run_over_messages(Messages& messages, const schedule& s, const wait_watch& watch) {
  if (s.phases.empty()) return messages.run(s, buffers_.bound(), watch);
  return in_memory_->phases.run(s, buffers_.bound(), messages, in_memory_->runs, watch);
}

bool session::keep_rails_on() {
  if (over_rails_->rail.poll({}) >= 0) return true;
  record_failure_of_rails();
  return false;
}

void session::record_failure_of_rails() {
  process_.record("the rails of communicator '" + joint_.communicator() +
                  "' have failed, its collectives are the MPI library's from now on: " +
                  over_rails_->rail.failure());
}

calling_rank session::caller() const {
  return {rank_, num_ranks_, process_.datatype_key(), joint_.lane().of().comm};
}

std::uint8_t session::policy_index(std::string_view name) {
  for (std::size_t i = 0; i < policies_.size(); ++i)
    if (policies_[i] == name) return std::uint8_t(i);
  try {
    select::require_policy(name);
    if (policies_.size() > std::numeric_limits<std::uint8_t>::max())
      throw error("too many policies are named in calls");
    policies_.emplace_back(name);
    return std::uint8_t(policies_.size() - 1);
  } catch (const error& problem) {
    process_.record(std::string(problem.what()) + "; the communicator's policy is used");
    return 0;
  }
}

}  // namespace railpass::internal

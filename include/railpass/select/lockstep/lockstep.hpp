// SPDX-License-Identifier: BSL-1.0
//
// How all ranks of a communicator take the same arm in every call without a message per call: a
// state machine without I/O that every rank feeds with the same calls. Rank 0, the leader, holds
// the policies; the others only follow. Its parts: what is followed (followed_context.hpp), in
// which call a merge makes which step (merge_steps.hpp), what is sent (merge_words.hpp), what the
// leader learns (leader.hpp), and when it wants the next merge (merge_pacing.hpp).
//
//   * Contexts are numbered in order of first use. Each has a current plan: an incumbent, a list of
//     calls that run another arm, and how often the incumbent is timed.
//   * A new context gets its first plan by one broadcast of a fixed-size message in its first call,
//     which also says by when the next merge begins.
//   * Times of timed calls travel to the leader in a merge, along a tree: every rank adds its own
//     to those of its children and passes the report on, MIN by MIN; the leader learns, plans, and
//     its reply takes the same way back. The tree is binomial: in one call a rank receives at most
//     one message and sends at most one, and what it receives has been sent a call ago, so nobody
//     waits. Where waiting costs little beside a call, all do everything in one call instead, along
//     a wider tree, and learn sooner. When to merge next, and how, is part of the reply.
//   * Sequence number, contexts, calls and plans are hashed into every report. If the ranks differ,
//     the reply says so to all, and the communicator stays native for good.
//
// What a caller does in each blocking call, with `ls` the communicator's lockstep:
//
//     if (ls.awaits_next()) ls.note_next(clock(), dependence_in(next collective));
//     if (ls.begin_call()) {                              // rarely: a merge has a step to make
//       ls.begin_steps(clock());
//       for (merge_step s; (s = ls.due()) != merge_step::none;) switch (s) {
//         case post:    ls.post();
//         case collect: receive words from child ls.child(); ls.add(words);
//         case report:  if (rank == 0) ls.answer(); else send ls.report() to the parent;
//         case receive: receive ls.reply_room() from the parent; ls.received();
//         case deliver: send ls.reply() to child ls.child();  // which reply() changes
//         case consume: if (ls.consume() == merge_outcome::mismatch) report once;
//       }
//       ls.end_steps(clock());
//     }
//     timed_call c = ls.next_call(id);
//     if (c.needs_first_plan) {
//       plan_message m;
//       if (rank == 0) m = ls.lead(c.context, make_policy(...));
//       MPI_Bcast(m, root 0);
//       ls.adopt(c.context, m);
//       c = ls.next_call(id);
//     }
//     started = clock(); run c.arm; ended = clock();
//     if (c.timed) ls.record(c, ended - started, ls.gap_s(c, started));
//     if (c.timed && ls.shares_clock()) ls.await_next(c, started, ended, role);
//     if (c.notes_end) ls.note_end(c, ended);
#pragma once

#include "railpass/base/float_environment.hpp"
#include "railpass/select/lockstep/clock_offset.hpp"
#include "railpass/select/lockstep/context.hpp"
#include "railpass/select/lockstep/dependence.hpp"
#include "railpass/select/lockstep/followed_context.hpp"
#include "railpass/select/lockstep/leader.hpp"
#include "railpass/select/lockstep/merge_costs.hpp"
#include "railpass/select/lockstep/merge_pacing.hpp"
#include "railpass/select/lockstep/merge_steps.hpp"
#include "railpass/select/lockstep/merge_words.hpp"
#include "railpass/select/lockstep/skew.hpp"
#include "railpass/select/policy/policy.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace railpass::select {

/// Equal on all ranks of a communicator.
struct lockstep_settings {
  int max_contexts = 256;  ///< later ones run the native arm, untimed
};

/// What a call is to do. `context` and `slot` belong to the lockstep.
struct timed_call {
  int context = -1;
  int arm = native_arm;
  int slot = -1;
  bool timed = false;
  bool needs_first_plan = false;
  bool notes_end = false;     ///< the next call of the context may want to know when this one ended
  bool watches_core = false;  ///< record() wants to know whether the rank's core was given away
};

enum class merge_outcome : std::uint8_t { agreed, mismatch };

class lockstep {
 public:
  static constexpr int protocol_version = 11;
  static constexpr int no_context = -1;

  /// On one rank; rank 0 is the leader.
  explicit lockstep(const lockstep_settings& settings, int rank = 0, int num_ranks = 1)
      : steps_(rank, num_ranks),
        settings_(settings),
        is_leader_(rank == 0),
        pacing_(steps_.spread_height()) {
    std::size_t slots = 16;
    while (slots < 2 * std::size_t(std::max(1, settings.max_contexts))) slots *= 2;
    index_.assign(slots, -1);
    queue_.reserve(merge_report::max_samples);
    in_flight_.reserve(merge_report::max_samples);
    contexts_.reserve(spare_contexts);
    if (is_leader_) leader_.reserve(spare_contexts);
  }

  /// Leader only, before the first call: better guesses than those of an unknown machine, and how
  /// much time has passed per call so far, if that is known; and the account of the process, which
  /// outlives the lockstep.
  void expect(const merge_costs& costs, double passed_s = 0, account* of_process = nullptr) {
    const own_float_environment own;
    pacing_ = merge_pacing(steps_.spread_height(), costs, passed_s, of_process);
    leader_.spend_from(of_process);
    leader_.expect_asking(costs.ask_s);
  }

  /// All ranks, before the first call: their clocks are one, or they have agreed on one, so the
  /// cost of a call to the program can be told.
  void share_clock() {
    shares_clock_ = true;
    report_.share_clock();
  }
  bool shares_clock() const { return shares_clock_; }
  /// Before post(), where clocks are not one: what this rank knows of the agreed one by now.
  void know_clock(const clock_offset& of_this_rank) { clock_ = of_this_rank; }
  /// This rank measures by a clock of its own after all: what it says counts as before.
  void lose_clock() { mine_.lacks_clock = true; }

  /// Counts one blocking call on the communicator; true if due() has something to do.
  bool begin_call() { return steps_.begin_call(); }

  merge_step due() const { return steps_.due(); }
  /// The next step of a merge that has begun, even if it is not due.
  merge_step outstanding() const { return steps_.outstanding(); }

  /// Begins a merge.
  void post();

  /// The tree of the merge that is under way, or else of the next one.
  const tree_place& tree() const { return steps_.tree(); }
  /// Steps `collect` and `deliver`: which of the rank's children in it they are about.
  int child() const { return steps_.child(); }

  /// Ends step `collect`: adds the report of child(), as it was received. May be longer than it was
  /// sent if what is behind is merge_report::neutral.
  void add(std::span<const std::int32_t> childs_report) {
    report_.add(childs_report);
    steps_.collected();
  }

  /// Ends step `report`: what is to be sent to the parent. Stays the lockstep's and as it is until
  /// the next post(), as reply() does.
  std::span<const std::int32_t> report() {
    steps_.reported();
    return report_.words();
  }
  /// Ends it on the leader.
  void answer();

  /// Step `receive`: where the parent's reply is to be received; received() ends it.
  std::span<std::int32_t> reply_room() { return reply_.room(); }
  void received() { steps_.received(); }

  /// Ends step `deliver`: what is to be sent to what was child() before.
  std::span<const std::int32_t> reply() {
    steps_.delivered();
    return reply_.words();
  }

  /// Takes over the leader's reply. `mismatch` is returned once, on all ranks in the same call;
  /// from then on every call is native and no merge is due.
  merge_outcome consume();

  /// Makes the due step of a leader that is alone, or that stands for ranks which measure what it
  /// measures. True if it ends a merge.
  bool step_alone() {
    switch (due()) {
      case merge_step::none:
        break;
      case merge_step::post:
        post();
        break;
      case merge_step::collect:
        steps_.collected();
        break;
      case merge_step::report:
        answer();
        break;
      case merge_step::receive:
        received();
        break;
      case merge_step::deliver:
        (void)reply();
        break;
      case merge_step::consume:
        (void)consume();
        return true;
    }
    return false;
  }

  /// When this rank began the merge steps of a call, and when it had made them; any clock that all
  /// calls use. The largest sum over the ranks is what a merge is taken to cost.
  void begin_steps(double now_s) { steps_began_s_ = now_s; }
  void end_steps(double now_s) { charged_s_ += now_s - steps_began_s_; }

  bool native_for_good() const { return native_for_good_; }
  /// All calls are, from now on: on all ranks between the same two calls.
  void stay_native() {
    native_for_good_ = true;
    steps_.stop();
  }

  /// The kernel refuses this rank single copies: from the next merge on copies_refused() is true on
  /// all ranks.
  void refuse_copies() { mine_.refuses_copies = true; }
  bool refuses_copies() const { return mine_.refuses_copies; }
  bool copies_refused() const { return copies_refused_; }

  /// This rank may have memory of a GPU: from the next merge on all ranks are native for good, as
  /// if they differed, and device_found() says why.
  void find_device() { mine_.has_device = true; }
  bool device_found() const { return reply_.found().has_device; }

  /// Whether the calls of a context of all sizes begin by asking all ranks for their size: then
  /// they are those of the context of that size.
  bool asks_size(const context_id& of_all_sizes) {
    if (native_for_good_) return false;
    const int c = find(of_all_sizes);
    return c >= 0 && contexts_[std::size_t(c)].asks_size;
  }

  /// Which arm the call takes. A settled call costs a few nanoseconds; nothing is allocated except
  /// in the first call of a context.
  timed_call next_call(const context_id& id) {
    if (native_for_good_) return {};
    const int c = find(id);
    if (c < 0) return {};
    followed_context& s = contexts_[std::size_t(c)];
    if (s.calls != s.next_event) {
      ++s.calls;
      return {.context = c,
              .arm = s.incumbent,
              .notes_end = s.calls == s.next_event || outstanding() != merge_step::none};
    }
    return eventful_call(c);
  }

  /// Leader only: makes the context's first plan with its policy, which it keeps. A null policy
  /// means: native, untimed, for good; that needs no memory. Otherwise std::bad_alloc may be
  /// thrown, and nothing has changed.
  plan_message lead(int context, std::unique_ptr<policy> chosen);

  /// Leader only: another policy for the context, which takes over with its next plan.
  void change_policy(int context, std::unique_ptr<policy> chosen) {
    const own_float_environment own;
    leader_.change_policy(context, std::move(chosen), calls(context), merge_cost_s());
  }

  /// All ranks: the first plan of a context.
  void adopt(int context, const plan_message& message);

  /// The time of a timed call on this rank, since when the context had been idle there, and whether
  /// the rank's core was given to others meanwhile. A call that failed is not recorded.
  void record(const timed_call& call, double seconds, std::optional<double> gap_s = {},
              bool gave_core = false) {
    if (call.slot < 0 || std::size_t(call.slot) >= queue_.size()) return;
    const own_float_environment own;
    timed_sample& mine = queue_[std::size_t(call.slot)];
    mine.seconds = float(seconds);
    mine.gap_ticks =
        gap_s ? std::int32_t(std::clamp(*gap_s * 1e7, 0.0, 1e9)) : timed_sample::no_gap;
    mine.gave_core = gave_core;
  }

  /// What this rank knows of the size of a timed call whose lengths only pairs of ranks know.
  void note_size(const timed_call& call, const rank_size& size) {
    if (call.slot >= 0 && std::size_t(call.slot) < queue_.size())
      queue_[std::size_t(call.slot)].size = size;
  }

  /// After record(), where ranks share a clock: what the call costs shows when this rank comes to
  /// its next one, of whatever context, as note_next() says before begin_call().
  void await_next(const timed_call& call, double came_s, double left_s, rank_role role) {
    if (call.slot < 0 || std::size_t(call.slot) >= queue_.size() || role.of == dependence::unknown)
      return;
    timed_sample& mine = queue_[std::size_t(call.slot)];
    mine.came_s = came_s;
    mine.left_s = left_s;
    mine.role = role;
    awaited_slot_ = call.slot;
  }
  bool awaits_next() const { return awaited_slot_ >= 0; }
  void note_next(double now_s, dependence next) {
    timed_sample& mine = queue_[std::size_t(std::exchange(awaited_slot_, -1))];
    if (last_counts(mine.role.of, next)) mine.next_s = now_s;
  }

  /// When a call ended on this rank, and how long before `started_s` the one before it did; nothing
  /// if that one's end was not noted. Any clock that all calls use.
  void note_end(const timed_call& call, double ended_s) {
    followed_context& s = contexts_[std::size_t(call.context)];
    s.ended_s = ended_s;
    s.ended_call = s.calls;
  }
  std::optional<double> gap_s(const timed_call& call, double started_s) const {
    const followed_context& s = contexts_[std::size_t(call.context)];
    if (s.ended_call + 1 != s.calls) return std::nullopt;
    return started_s - s.ended_s;
  }

  int num_contexts() const { return int(contexts_.size()); }
  const context_id& id(int context) const { return contexts_[std::size_t(context)].id; }
  std::int64_t calls(int context) const { return contexts_[std::size_t(context)].calls; }
  int incumbent(int context) const { return contexts_[std::size_t(context)].incumbent; }
  /// Whether the incumbent has settled, the same on all ranks; see followed_context.
  bool is_settled(int context) const { return contexts_[std::size_t(context)].is_settled(); }
  /// How often the current plan runs an arm: the share of its calls, the same on all ranks. A call
  /// without a context (-1) is always native.
  double share(int context, int arm) const {
    if (context < 0) return arm == native_arm ? 1 : 0;
    return contexts_[std::size_t(context)].share(arm);
  }

  std::int64_t calls() const { return steps_.calls(); }
  std::int64_t merges() const { return merges_; }
  /// Leader only: what a merge costs that is spread over calls, as measured so far.
  double merge_cost_s() const { return pacing_.spread_cost_s(); }
  /// Leader only: what all merges have cost so far.
  double merges_cost_s() const { return pacing_.all_cost_s(); }
  /// Leader only: how much of the calls' time overlaps with that of others; see merge_pacing.
  double overlapped_share() const { return pacing_.overlapped_share(); }
  /// Leader only; null if the context is native for good.
  const policy* policy_of(int context) const { return leader_.policy_of(context); }
  /// Leader only: arms that ran, in the order of their first call.
  std::vector<arm_record> records(int context) const {
    return leader_.records(context, contexts_[std::size_t(context)]);
  }
  /// Leader only: how far apart the ranks came to the latest timed calls of which that is known.
  std::span<const double> skews_s(int context) const { return leader_.skews_s(context); }
  /// Leader only: of the context's calls, where only merges tell; nothing if none has.
  std::optional<size_record> sizes(int context) const { return leader_.sizes(context); }
  /// Whether its calls ask for their size, the same on all ranks.
  bool asks_size(int context) const { return contexts_[std::size_t(context)].asks_size; }
  /// Leader only: in how many of the context's timed calls the time is what the call cost the
  /// program, in [0, 1]; nothing if in none.
  std::optional<double> cost_share(int context) const { return leader_.cost_share(context); }
  /// Leader only: in how many of the timed calls for which all wait a rank's core was given to
  /// others, in [0, 1]; nothing if there were none.
  std::optional<double> core_given_share() const { return leader_.core_given_share(); }

 private:
  static constexpr std::size_t spare_contexts = 4;
  static constexpr int incumbent_samples_per_merge = 16;  // per context

  int find(const context_id& id) {
    for (std::size_t i = 0; i < recent_numbers_.size(); ++i)
      if (recent_numbers_[i] == id.number) return recent_contexts_[i];
    return look_up(id);
  }
  [[gnu::noinline]] int look_up(const context_id& id) {
    const std::size_t mask = index_.size() - 1;
    std::size_t i = mix(0, id.number) & mask;
    while (index_[i] >= 0 && contexts_[std::size_t(index_[i])].id != id) i = (i + 1) & mask;
    if (index_[i] < 0) {
      if (num_contexts() >= settings_.max_contexts) return no_context;
      if (is_leader_)
        leader_.add_context(id.of_all_sizes == 0 ? no_context : known(id.of_all_sizes));
      contexts_.push_back({.id = id});
      any_waits_for_all_ = any_waits_for_all_ || id.waits == waiting::for_all;
      index_[i] = num_contexts() - 1;
      fingerprint_ = mix(fingerprint_, id.number);
      make_room();
    }
    const std::size_t oldest = next_recent_++ % recent_numbers_.size();
    recent_numbers_[oldest] = id.number;
    return recent_contexts_[oldest] = index_[i];
  }

  int known(std::uint32_t number) const {
    const auto same =
        std::ranges::find(contexts_, number, [](const followed_context& s) { return s.id.number; });
    return same == contexts_.end() ? no_context : int(same - contexts_.begin());
  }

  /// For the next contexts, ahead of time: a rank that had no memory for one in the call in which
  /// it is new could not say what the others do in that call.
  void make_room() {
    if (contexts_.size() < contexts_.capacity() && (!is_leader_ || leader_.has_room())) return;
    try {
      contexts_.reserve(2 * contexts_.size());
      if (is_leader_) leader_.reserve(2 * contexts_.size());
    } catch (const std::bad_alloc&) {  // maybe later
    }
  }

  /// Empty blocks make calls that say nothing of cores: they are asked only if there is no better.
  bool shows_sharing(waiting waits) const {
    return waits == waiting::for_all ||
           (!any_waits_for_all_ && (waits == waiting::usually_for_all || shares_clock_));
  }
  timed_call eventful_call(int context);
  bool admit(int context, bool explored);
  std::size_t activate(std::span<const std::int32_t> plan);

  // What every call reads, on few cache lines.
  std::vector<followed_context> contexts_;
  bool any_waits_for_all_ = false;
  bool native_for_good_ = false;
  bool shares_clock_ = false;
  int awaited_slot_ = -1;  // in the queue: a sample that ends with this rank's next call
  // The contexts of late: most loops of programs have few.
  std::array<std::uint32_t, 4> recent_numbers_{~0u, ~0u, ~0u, ~0u};
  std::array<int, 4> recent_contexts_{};
  std::size_t next_recent_ = 0;
  merge_steps steps_;

  lockstep_settings settings_;
  bool is_leader_ = false;
  rank_findings mine_;
  bool copies_refused_ = false;  // of some rank
  bool poisoned_ = false;  // this rank saw that the ranks differ; the next merge tells the others
  std::int64_t merges_ = 0;
  std::int32_t samples_room_ = merge_report::min_samples;
  std::uint32_t fingerprint_ = mix(protocol_version, 0);
  double steps_began_s_ = 0, charged_s_ = 0;
  std::int64_t waited_calls_ = 0;    // timed ones that show whether cores are shared
  std::vector<std::int32_t> index_;  // open addressing: context or -1
  std::vector<timed_sample> queue_;
  std::vector<timed_sample> in_flight_;
  merge_report report_;
  merge_reply reply_;
  clock_offset clock_;

  // Of use on the leader only.
  leader leader_;
  merge_pacing pacing_;
};

// ---- calls

inline timed_call lockstep::eventful_call(int context) {
  followed_context& s = contexts_[std::size_t(context)];
  if (!s.has_plan) return {.context = context, .needs_first_plan = true};
  const std::optional<std::int32_t> explored = s.take_exploration();
  timed_call call{.context = context, .arm = explored.value_or(s.incumbent)};
  const bool is_timed = s.calls >= s.next_timed;
  if (explored || is_timed) {
    if (admit(context, explored.has_value())) {
      call.timed = true;
      call.watches_core = shows_sharing(s.id.waits) && core_sharing::watched(waited_calls_++);
      call.slot = int(queue_.size());
      queue_.push_back({.context = context,
                        .arm = call.arm,
                        .explored = explored.has_value(),
                        .call = s.calls,
                        .arm_before = s.arm_before(),
                        .watches_core = call.watches_core,
                        .beside_merge = outstanding() != merge_step::none});
    }
    fingerprint_ = mix(fingerprint_, std::uint64_t(context) << 32 | std::uint32_t(call.arm) << 1 |
                                         std::uint32_t(call.timed));
  }
  if (is_timed) s.schedule_timed();
  if (is_leader_ && explored) leader_.note_exploration(context, call.arm);
  s.end_eventful(call.arm);
  call.notes_end = s.calls == s.next_event || outstanding() != merge_step::none;
  return call;
}

/// Whether one more timed call fits in the next merge: a decision from values that are equal on all
/// ranks. Explored calls are worth more than further samples of an incumbent; if there are too many
/// of these, every second one is dropped and fewer are made, so that they are of all calls since
/// the last merge and not of the first ones only.
inline bool lockstep::admit(int context, bool explored) {
  // While a merge is under way, the room of the next one is not known yet.
  const int room = outstanding() != merge_step::none ? merge_report::min_samples : samples_room_;
  const int used = int(queue_.size());
  if (explored) return used < room;
  const auto is_mine = [&](const timed_sample& one) {
    return one.context == context && !one.explored;
  };
  const auto mine = std::count_if(queue_.begin(), queue_.end(), is_mine);
  if (used < room * 3 / 4 && mine < incumbent_samples_per_merge) return true;
  if (mine < 4) return false;
  bool drop = false;
  std::erase_if(queue_, [&](const timed_sample& one) { return is_mine(one) && (drop = !drop); });
  std::int32_t& stride = contexts_[std::size_t(context)].stride;
  stride = std::min(2 * stride, longest_epoch / 4);
  return true;
}

// ---- plans

/// Makes the plan in these words its context's current one; returns how many words it has.
inline std::size_t lockstep::activate(std::span<const std::int32_t> plan) {
  const int context = plan[plan_words::context];
  followed_context& s = contexts_[std::size_t(context)];
  if (is_leader_) leader_.account_calls(context, s);
  const std::size_t used = s.activate(plan);
  for (const std::int32_t word : plan.first(used))
    fingerprint_ = mix(fingerprint_, std::uint32_t(word));
  return used;
}

inline plan_message lockstep::lead(int context, std::unique_ptr<policy> chosen) {
  const own_float_environment own;
  const context_id& id = contexts_[std::size_t(context)].id;
  const epoch_plan p = leader_.begin(context, std::move(chosen), calls(), merge_cost_s());
  const double call_s = leader_.expected_s(context, p.incumbent).value_or(0);
  plan_message message{};
  message[first_plan_words::key] = std::int32_t(id.number & 0x7fffffff);
  message[first_plan_words::call] = std::int32_t(calls() & 0x7fffffff);
  const hastened_merge next = pacing_.after_first_plan(call_s, leader_.least_predicted_s(context),
                                                       id.waits == waiting::for_all, p.length,
                                                       leader_.calls_since_answer(calls()));
  message[first_plan_words::gap] = std::max(1, next.gap);
  message[first_plan_words::pace] = next.pace;
  plan_words::write(p, context, std::span(message).subspan(first_plan_words::header));
  return message;
}

inline void lockstep::adopt(int context, const plan_message& message) {
  const context_id& id = contexts_[std::size_t(context)].id;
  const auto plan = std::span(message).subspan(first_plan_words::header);
  if (message[first_plan_words::key] == std::int32_t(id.number & 0x7fffffff) &&
      message[first_plan_words::call] == std::int32_t(calls() & 0x7fffffff) &&
      plan[plan_words::context] == context) {
    activate(plan);
  } else {
    poisoned_ = true;
    std::array<std::int32_t, plan_words::header> native{};
    plan_words::write(native_plan(), context, native);
    activate(native);
  }
  // Also by what was for another context, or is from another call: all have got the same, and are
  // to merge in the same call by number. None of the leader's has no gap.
  const std::int32_t gap = message[first_plan_words::gap];
  if (gap < 1) return;
  const std::int64_t ahead = message[first_plan_words::call] - (calls() & 0x7fffffff);
  steps_.hasten(std::int32_t(std::clamp<std::int64_t>(gap + ahead, 1, longest_epoch)),
                message[first_plan_words::pace] == 0 ? 0 : 1);
}

// ---- merges

inline void lockstep::post() {
  const own_float_environment own;
  for (const followed_context& s : contexts_)
    fingerprint_ = mix(fingerprint_, std::uint64_t(s.calls));
  std::swap(queue_, in_flight_);
  queue_.clear();
  report_.write(calls(), poisoned_ ? -1 : std::int32_t(fingerprint_ & 0x7fffffff), charged_s_,
                mine_, in_flight_, samples_room_, clock_);
  charged_s_ = 0;
  steps_.posted();
}

inline void lockstep::answer() {
  const own_float_environment own;
  steps_.received();
  reply_.begin(report_.agrees() && !report_.found().has_device);
  reply_.set(report_.found());
  if (!reply_.agreed()) return;
  const std::int32_t reply_calls = steps_.calls_to_reply();
  pacing_.charge(steps_.pace(), report_.charged_s(), leader_.slowdown());
  leader_.learn(in_flight_, report_, contexts_);
  leader_.plan(contexts_, queue_, reply_calls, merge_cost_s());
  const merge_demand demand = leader_.answer(contexts_, calls(), reply_calls, reply_);
  reply_.set(pacing_.next(demand, reply_calls, steps_began_s_));
}

inline merge_outcome lockstep::consume() {
  ++merges_;
  if (!reply_.agreed()) {
    native_for_good_ = true;
    steps_.consumed_last();
    return merge_outcome::mismatch;
  }
  copies_refused_ = copies_refused_ || reply_.found().refuses_copies;
  const next_merge next = reply_.next();
  steps_.consumed(next.gap, next.pace);
  samples_room_ = next.samples;
  reply_.for_each_plan([this](std::span<const std::int32_t> rest) { return activate(rest); });
  return merge_outcome::agreed;
}

}  // namespace railpass::select

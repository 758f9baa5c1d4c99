// SPDX-License-Identifier: BSL-1.0
//
// The lockstep: a state machine without I/O with which all ranks of a communicator choose the same
// arm in every call, without a message per call. Every rank feeds it the same calls. Rank 0, the
// leader, holds the policies; all other ranks follow. The parts have a file each: the state of a
// context (followed_context.hpp), the steps of a synchronisation ("merge") by call
// (merge_steps.hpp), messages (merge_words.hpp), the leader (leader.hpp), and the time of the next
// synchronisation (merge_pacing.hpp).
//
// - Contexts are numbered in order of first use. Each context has a current plan: an incumbent, a
//   list of calls that run another arm, and how often the incumbent is timed.
// - A new context gets its first plan in its first call, by one broadcast of a fixed-size message.
//   The message also limits when the next synchronisation starts.
// - Times of timed calls travel to the leader in a synchronisation, along a tree. Every rank
//   combines its own times with its children's (MIN of each word) and passes the report on. The
//   leader learns and plans, and its reply takes the same path back. The tree is binomial: in one
//   call a rank receives at most one message, sent a call ago, and sends at most one, so no rank
//   waits. If waiting costs little compared with a call, all steps are made within one call along a
//   wider tree, which teaches sooner. The reply contains the time and form of the next
//   synchronisation.
// - Sequence number, contexts, calls and plans are hashed into every report. If the ranks differ,
//   the reply says so to all ranks, and the communicator falls back to native permanently.
//
// The caller's part in each blocking call, with `ls` the communicator's lockstep:
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
//
// After the last call: ls.conclude(), and the steps that ls.last_step() names in place of ls.due().
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
#include "railpass/select/lockstep/standing.hpp"
#include "railpass/select/policy/policy.hpp"
#include "railpass/select/statistics/rank_ledger.hpp"

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
  int max_contexts = 256;  ///< later contexts run native without timing
};

/// The decision for a call. `context` and `number` belong to the lockstep.
struct timed_call {
  int context = -1;
  int arm = native_arm;
  std::int64_t number = -1;  ///< among the context's calls, if the call is timed
  bool timed = false;
  bool needs_first_plan = false;
  bool notes_end = false;     ///< the context's next call may need to know when this call ended
  bool watches_core = false;  ///< record() needs to know whether the rank lost its core
  bool checked = false;       ///< the ranks check the result
};

enum class merge_outcome : std::uint8_t { agreed, mismatch };

class lockstep {
 public:
  static constexpr int protocol_version = 13;
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

  /// Leader only, before the first call: replaces the defaults for an unknown machine.
  /// @param costs expected costs of synchronisations
  /// @param passed_s time per call so far, in seconds; 0 if unknown
  /// @param of_process the process's account, which outlives the lockstep
  void expect(const merge_costs& costs, double passed_s = 0, account* of_process = nullptr) {
    const own_float_environment own;
    pacing_ = merge_pacing(steps_.spread_height(), costs, passed_s, of_process);
    leader_.spend_from(of_process);
    leader_.expect_asking(costs.ask_s);
  }

  /// On all ranks, before the first call: the ranks share a clock or have agreed on one, so that
  /// the cost of a call to the program can be measured.
  void share_clock() {
    shares_clock_ = true;
    report_.share_clock();
  }
  bool shares_clock() const { return shares_clock_; }
  /// Before post(), if clocks differ: what this rank knows about the agreed clock so far.
  void know_clock(const clock_offset& of_this_rank) { clock_ = of_this_rank; }
  /// This rank measures by a clock of its own after all: its times then count as without a clock.
  void lose_clock() { mine_.lacks_clock = true; }

  /// Counts one blocking call on the communicator; returns whether due() has something to do.
  bool begin_call() { return steps_.begin_call(); }

  merge_step due() const { return steps_.due(); }
  /// The next step of a started synchronisation, even if the step is not due.
  merge_step outstanding() const { return steps_.outstanding(); }

  /// On all ranks: no call follows. After the synchronisation that is under way, a last one tells
  /// the leader of the calls since; nothing is replied. The last timed call does not count if its
  /// time ends with a next call.
  void conclude() {
    if (awaits_next()) queue_[std::size_t(std::exchange(awaited_slot_, -1))].seconds = -1;
    is_concluding_ = true;
  }
  /// The next step before the communicator ends, even if the step is not due.
  merge_step last_step() const;
  /// Whether the synchronisation that has been posted is the last one.
  bool is_last() const { return is_last_; }

  /// Starts a synchronisation.
  void post();

  /// The tree of the current synchronisation, or else of the next one.
  const tree_position& tree() const { return steps_.tree(); }
  /// Steps `collect` and `deliver`: the child in question.
  int child() const { return steps_.child(); }

  /// Ends step `collect`: adds the report received from child(). The received report may be longer
  /// than sent if the rest is merge_report::neutral.
  void add(std::span<const std::int32_t> childs_report) {
    report_.add(childs_report);
    steps_.collected();
  }

  /// Ends step `report`: returns the message for the parent. Like reply(), it belongs to the
  /// lockstep and stays unchanged until the next post().
  std::span<const std::int32_t> report() {
    steps_.reported();
    return report_.words();
  }
  /// Ends step `report` on the leader.
  void answer();

  /// Step `receive`: room for the parent's reply; received() ends the step.
  std::span<std::int32_t> reply_room() { return reply_.room(); }
  void received() { steps_.received(); }

  /// Ends step `deliver`: returns the message for the rank that was child() before.
  std::span<const std::int32_t> reply() {
    steps_.delivered();
    return reply_.words();
  }

  /// Applies the leader's reply. Returns `mismatch` once, on all ranks in the same call; from then
  /// on every call is native and no synchronisation is due.
  merge_outcome consume();

  /// Makes the due step of a leader without other ranks, or of a leader that represents ranks with
  /// equal measurements. Returns whether the step ends a synchronisation.
  bool step_alone() { return make_alone(due()); }
  /// The same for all steps before the communicator ends.
  void conclude_alone() {
    conclude();
    for (merge_step step; (step = last_step()) != merge_step::none;) (void)make_alone(step);
  }

  /// Start and end of the steps in a call, by any clock that all calls use. The cost of a
  /// synchronisation is the largest sum of any rank.
  void begin_steps(double now_s) { steps_began_s_ = now_s; }
  void end_steps(double now_s) { charged_s_ += now_s - steps_began_s_; }

  /// From `tuned` on. A refusal comes from a synchronisation, other turns from the caller: a
  /// fallback on all ranks between the same two calls.
  select::standing standing() const { return standing_; }
  void take(turn what) {
    standing_ = after(standing_, what);
    if (what == turn::fallback) steps_.stop();
  }
  /// On all ranks between the same two calls, before the first context: nothing is to be learnt.
  void make_no_merges() { steps_.stop(); }
  bool native_for_good() const { return standing_ == select::standing::native; }

  /// The kernel refuses single copies to this rank. From the next synchronisation on,
  /// copies_refused() is true on all ranks.
  void refuse_copies() { mine_.refuses_copies = true; }
  bool refuses_copies() const { return mine_.refuses_copies; }
  bool copies_refused() const { return copies_refused_; }

  /// This rank may have GPU memory. From the next synchronisation on, all ranks are native
  /// permanently, as after a mismatch, and device_found() gives the reason.
  void find_device() { mine_.has_device = true; }
  bool device_found() const { return reply_.found().has_device; }

  /// Whether this process has exclusions that the ranks have not united, from now on.
  void tell_exclusions(bool some) { mine_.has_exclusions = some; }
  /// True once, on all ranks in the same call, after a synchronisation in which a rank told this.
  bool take_exclusions() { return std::exchange(exclusions_told_, false); }

  /// Whether the calls of a context of all sizes start by asking all ranks for their size. Such
  /// calls belong to the context of that size.
  bool asks_size(const context_id& of_all_sizes) {
    if (native_for_good()) return false;
    const int c = find(of_all_sizes);
    return c >= 0 && contexts_[std::size_t(c)].asks_size;
  }

  /// Chooses the arm of a call. A converged call costs a few nanoseconds; only the first call of a
  /// context allocates memory.
  timed_call next_call(const context_id& id) {
    if (native_for_good()) return {};
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

  /// Leader only, before the first context: checks calls for at most this share of their time.
  void check(double share) { leader_.check(share); }
  /// After record() and note_end(): how much longer a call took because it was checked. The times
  /// of calls do not contain that.
  void note_check(const timed_call& call, double seconds) {
    const own_float_environment own;
    if (awaits_next()) check_s_ = seconds;
    contexts_[std::size_t(call.context)].ended_s += seconds;
    if (is_leader_) leader_.note_check(call.context, call.arm, seconds);
  }

  /// Leader only: creates the context's first plan.
  /// @param chosen the context's policy; null: native without timing, permanently, without memory
  /// @param may_check whether results of the context's calls can be checked
  /// @throws std::bad_alloc without any change, if `chosen` is not null
  plan_message lead(int context, std::unique_ptr<policy> chosen, bool may_check = true);

  /// Leader only: changes the context's policy from its next plan on.
  void change_policy(int context, std::unique_ptr<policy> chosen) {
    const own_float_environment own;
    leader_.change_policy(context, std::move(chosen), calls(context), merge_cost_s());
  }

  /// All ranks: the first plan of a context.
  void adopt(int context, const plan_message& message);

  /// Records a timed call on this rank. Failed calls are not recorded.
  /// @param gap_s time for which the context was idle on this rank before the call
  /// @param gave_core whether the rank lost its core during the call
  void record(const timed_call& call, double seconds, std::optional<double> gap_s = {},
              bool gave_core = false) {
    timed_sample* const mine = sample_of(call);
    if (!mine) return;
    const own_float_environment own;
    mine->seconds = float(seconds);
    mine->gap_ticks =
        gap_s ? std::int32_t(std::clamp(*gap_s * 1e7, 0.0, 1e9)) : timed_sample::no_gap;
    mine->gave_core = gave_core;
  }

  /// Notes this rank's view of the size of a timed call whose lengths only pairs of ranks know.
  void note_size(const timed_call& call, const rank_size& size) {
    if (timed_sample* const mine = sample_of(call)) mine->size = size;
  }

  /// After record(), if ranks share a clock: the cost of the call shows when this rank arrives at
  /// its next call of any context, which note_next() reports before begin_call().
  void await_next(const timed_call& call, double came_s, double left_s, rank_role role) {
    timed_sample* const mine = sample_of(call);
    if (!mine || role.of == dependence::unknown) return;
    mine->came_s = came_s;
    mine->left_s = left_s;
    mine->role = role;
    awaited_slot_ = int(mine - queue_.data());
  }
  bool awaits_next() const { return awaited_slot_ >= 0; }
  /// Returns the timed call, without the time of its check.
  timed_stay note_next(double now_s, dependence next) {
    timed_sample& mine = queue_[std::size_t(std::exchange(awaited_slot_, -1))];
    const double next_s = now_s - std::exchange(check_s_, 0.0);
    if (last_counts(mine.role.of, next)) mine.next_s = next_s;
    return {.came_s = mine.came_s, .left_s = mine.left_s, .next_s = next_s};
  }

  /// note_end() notes the end of a call on this rank. gap_s() is the time from the end of the call
  /// before until `started_s`, by any clock that all calls use; empty if that end was not noted.
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
  /// Whether the choice has converged, equal on all ranks; see followed_context.
  bool is_settled(int context) const { return contexts_[std::size_t(context)].is_settled(); }
  /// The share of the current plan's calls that run an arm, equal on all ranks. A call without a
  /// context (-1) is always native.
  double share(int context, int arm) const {
    if (context < 0) return arm == native_arm ? 1 : 0;
    return contexts_[std::size_t(context)].share(arm);
  }

  std::int64_t calls() const { return steps_.calls(); }
  std::int64_t merges() const { return merges_; }
  /// Leader only: the measured cost of a synchronisation that is spread over calls.
  double merge_cost_s() const { return pacing_.spread_cost_s(); }
  /// Leader only: the cost of all synchronisations so far.
  double merges_cost_s() const { return pacing_.all_cost_s(); }
  /// Leader only: the overlap of the calls' time with other calls; see merge_pacing.
  double overlapped_share() const { return pacing_.overlapped_share(); }
  /// Leader only; null if the context has fallen back to native permanently.
  const policy* policy_of(int context) const { return leader_.policy_of(context); }
  /// Leader only: arms that ran, in the order of their first call.
  std::vector<arm_record> records(int context) const {
    return leader_.records(context, contexts_[std::size_t(context)]);
  }
  /// Leader only: arrival imbalance of the latest timed calls, as far as known.
  std::span<const double> skews_s(int context) const { return leader_.skews_s(context); }
  /// Leader only: sizes of the context's calls, where only synchronisations report them; empty if
  /// none was reported.
  std::optional<size_record> sizes(int context) const { return leader_.sizes(context); }
  /// Whether the context's calls ask for their size, equal on all ranks.
  bool asks_size(int context) const { return contexts_[std::size_t(context)].asks_size; }
  /// Leader only: the share of the context's timed calls, in [0, 1], whose time is the cost to the
  /// program; empty if there are none.
  std::optional<double> cost_share(int context) const { return leader_.cost_share(context); }
  /// Leader only: the checks of results so far.
  const check_costs& checks(int context) const { return leader_.checks(context); }
  /// Leader only: the share of timed calls with waiting for all ranks, in [0, 1], in which a rank
  /// lost its core; empty without such calls.
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

  /// Reserves memory for the next contexts ahead of time: a rank without memory in a context's
  /// first call could not know the decision of the other ranks.
  void make_room() {
    if (contexts_.size() < contexts_.capacity() && (!is_leader_ || leader_.has_room())) return;
    try {
      contexts_.reserve(2 * contexts_.size());
      if (is_leader_) leader_.reserve(2 * contexts_.size());
    } catch (const std::bad_alloc&) {  // maybe later
    }
  }

  /// Calls with empty blocks reveal nothing about shared cores, so they are watched only if no
  /// better calls exist.
  bool shows_sharing(waiting waits) const {
    return waits == waiting::for_all ||
           (!any_waits_for_all_ && (waits == waiting::usually_for_all || shares_clock_));
  }
  /// Null if the sample is not in the queue any more: other calls were made inside the call, so
  /// that admit() has dropped the sample, or a synchronisation has started.
  timed_sample* sample_of(const timed_call& call) {
    if (call.number < 0) return nullptr;
    const auto found = std::find_if(queue_.rbegin(), queue_.rend(), [&](const timed_sample& one) {
      return one.context == call.context && one.call == call.number;
    });
    return found == queue_.rend() ? nullptr : &*found;
  }
  timed_call eventful_call(int context);
  bool make_alone(merge_step step);
  bool admit(int context, bool explored);
  std::size_t activate(std::span<const std::int32_t> plan);

  // State that every call reads, on few cache lines.
  std::vector<followed_context> contexts_;
  bool any_waits_for_all_ = false;
  select::standing standing_ = select::standing::tuned;
  bool shares_clock_ = false;
  double check_s_ = 0;     // of the call before, if it was checked
  int awaited_slot_ = -1;  // in the queue: a sample that ends with this rank's next call
  // The most recent contexts, because most loops of programs have few.
  std::array<std::uint32_t, 4> recent_numbers_{~0u, ~0u, ~0u, ~0u};
  std::array<int, 4> recent_contexts_{};
  std::size_t next_recent_ = 0;
  merge_steps steps_;

  lockstep_settings settings_;
  bool is_leader_ = false;
  rank_findings mine_;
  bool copies_refused_ = false;   // by some rank
  bool exclusions_told_ = false;  // in the last synchronisation, by some rank
  bool is_concluding_ = false, is_last_ = false;
  bool poisoned_ = false;  // this rank has seen a mismatch, and the next synchronisation reports it
  std::int64_t merges_ = 0;
  std::int32_t samples_room_ = merge_report::min_samples;
  std::uint32_t fingerprint_ = mix(protocol_version, 0);
  double steps_began_s_ = 0, charged_s_ = 0;
  std::int64_t waited_calls_ = 0;    // timed calls that show whether cores are shared
  std::vector<std::int32_t> index_;  // open addressing: context or -1
  std::vector<timed_sample> queue_;
  std::vector<timed_sample> in_flight_;
  merge_report report_;
  merge_reply reply_;
  clock_offset clock_;

  // For the leader only.
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
  call.checked = s.checks.take(s.calls, call.arm, s.id.number);
  if (explored || is_timed) {
    if (admit(context, explored.has_value())) {
      call.timed = true;
      call.watches_core = shows_sharing(s.id.waits) && core_sharing::watched(waited_calls_++);
      call.number = s.calls;
      queue_.push_back({.context = context,
                        .arm = call.arm,
                        .explored = explored.has_value(),
                        .call = s.calls,
                        .arm_before = s.arm_before(),
                        .watches_core = call.watches_core,
                        .beside_merge = outstanding() != merge_step::none});
    }
  }
  if (explored || is_timed || call.checked)
    fingerprint_ =
        mix(fingerprint_, std::uint64_t(context) << 32 | std::uint32_t(call.arm) << 2 |
                              std::uint32_t(call.checked) << 1 | std::uint32_t(call.timed));
  if (is_timed) s.schedule_timed();
  if (is_leader_ && explored) leader_.note_exploration(context, call.arm);
  s.end_eventful(call.arm);
  call.notes_end = s.calls == s.next_event || outstanding() != merge_step::none;
  return call;
}

/// Whether one more timed call fits in the next synchronisation, decided from values that are equal
/// on all ranks. Exploring calls are worth more than further samples of an incumbent. If an
/// incumbent has too many samples, every second sample is dropped and the stride grows, so that
/// samples cover all calls since the last synchronisation.
inline bool lockstep::admit(int context, bool explored) {
  // During a synchronisation the room of the next one is unknown.
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

/// Makes the plan in these words the current plan of its context; returns the number of its words.
inline std::size_t lockstep::activate(std::span<const std::int32_t> plan) {
  const int context = plan[plan_words::context];
  followed_context& s = contexts_[std::size_t(context)];
  if (is_leader_) leader_.account_calls(context, s);
  const std::size_t used = s.activate(plan);
  for (const std::int32_t word : plan.first(used))
    fingerprint_ = mix(fingerprint_, std::uint32_t(word));
  return used;
}

inline plan_message lockstep::lead(int context, std::unique_ptr<policy> chosen, bool may_check) {
  const own_float_environment own;
  const context_id& id = contexts_[std::size_t(context)].id;
  const epoch_plan p =
      leader_.begin(context, std::move(chosen), may_check, calls(), merge_cost_s());
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
  // All ranks get the same message and must synchronise in the same call, so the gap also counts if
  // the message was for another context or call. A leader without a next synchronisation sends no
  // gap.
  const std::int32_t gap = message[first_plan_words::gap];
  if (gap < 1) return;
  const std::int64_t ahead = message[first_plan_words::call] - (calls() & 0x7fffffff);
  steps_.hasten(std::int32_t(std::clamp<std::int64_t>(gap + ahead, 1, longest_epoch)),
                message[first_plan_words::pace] == 0 ? 0 : 1);
}

// ---- merges

inline merge_step lockstep::last_step() const {
  const merge_step next = outstanding();
  if (next == merge_step::none)
    return is_concluding_ && !is_last_ && !native_for_good() && !queue_.empty() ? merge_step::post
                                                                                : next;
  const bool is_told = next != merge_step::collect && next != merge_step::report;
  return is_last_ && is_told ? merge_step::none : next;
}

inline bool lockstep::make_alone(merge_step step) {
  switch (step) {
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

inline void lockstep::post() {
  const own_float_environment own;
  is_last_ = is_concluding_;
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
  if (is_last_) return leader_.learn(in_flight_, report_, contexts_);
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
    take(turn::refusal);
    steps_.consumed_last();
    return merge_outcome::mismatch;
  }
  copies_refused_ = copies_refused_ || reply_.found().refuses_copies;
  exclusions_told_ = reply_.found().has_exclusions;
  const next_merge next = reply_.next();
  steps_.consumed(next.gap, next.pace);
  samples_room_ = next.samples;
  reply_.for_each_plan([this](std::span<const std::int32_t> rest) { return activate(rest); });
  return merge_outcome::agreed;
}

}  // namespace railpass::select

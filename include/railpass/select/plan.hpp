// SPDX-License-Identifier: BSL-1.0
//
// How all ranks of a communicator take the same arm in every call without a message per call: a
// state machine without I/O that every rank feeds with the same calls. Rank 0, the leader, holds
// the policies; the others only follow.
//
//   * Contexts are numbered in order of first use. Each has a current plan: an incumbent, a list of
//     calls that run another arm, and how often the incumbent is timed.
//   * A new context gets its first plan by one broadcast of a fixed-size message in its first call.
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
//     timed_call c = ls.next_call(key);
//     if (c.needs_first_plan) {
//       plan_message m;
//       if (rank == 0) m = ls.lead(c.context, make_policy(...));
//       MPI_Bcast(m, root 0);
//       ls.adopt(c.context, m);
//       c = ls.next_call(key);
//     }
//     started = clock(); run c.arm; ended = clock();
//     if (c.timed) ls.record(c, ended - started, ls.gap_s(c, started));
//     if (c.notes_end) ls.note_end(c, ended);
#pragma once

#include "railpass/select/context.hpp"
#include "railpass/select/merge_costs.hpp"
#include "railpass/select/merge_tree.hpp"
#include "railpass/select/pairs.hpp"
#include "railpass/select/policy.hpp"
#include "railpass/select/skew.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace railpass::select {

/// The number of the native arm in every arms_of(op).
inline constexpr int native_arm = 0;

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

enum class merge_step : std::uint8_t { none, post, collect, report, receive, deliver, consume };
enum class merge_outcome : std::uint8_t { agreed, mismatch };

/// A first plan as it is broadcast.
inline constexpr int plan_message_words = 64;
using plan_message = std::array<std::int32_t, plan_message_words>;

/// What the leader saw of one arm of a context; for statistics.
struct arm_record {
  int arm = 0;
  std::int64_t calls = 0;
  std::int64_t samples = 0;    ///< timed calls that were merged
  double sum_s = 0;            ///< of the samples
  double sum_log = 0;          ///< of ln(seconds)
  double sum_log_squared = 0;  ///< of ln(seconds)^2
  double exploration_cost_s =
      0;                    ///< of samples of exploring calls: time beyond the incumbent's mean
  all_meetings meetings{};  ///< with native
};

class lockstep {
 public:
  static constexpr int protocol_version = 5;
  static constexpr std::int32_t neutral = std::numeric_limits<std::int32_t>::max();  ///< of MIN
  static constexpr int max_report_words = 264, max_reply_words = 512;
  static constexpr int no_context = -1;

  /// On one rank; rank 0 is the leader.
  explicit lockstep(const lockstep_settings& settings, int rank = 0, int num_ranks = 1)
      : settings_(settings), leader_(rank == 0), trees_(merge_trees(rank, num_ranks)) {
    std::size_t slots = 16;
    while (slots < 2 * std::size_t(std::max(1, settings.max_contexts))) slots *= 2;
    index_.assign(slots, -1);
    report_.reserve(max_report_words);
    reply_.assign(max_reply_words, 0);
    queue_.reserve(max_samples);
    in_flight_.reserve(max_samples);
    contexts_.reserve(spare_contexts);
    if (leader_) led_.reserve(spare_contexts);
  }

  /// Leader only, before the first call: better guesses than those of an unknown machine, and how
  /// much time has passed per call so far, if that is known.
  void expect(const merge_costs& costs, double passed_s = 0) {
    merge_costs_ = costs;
    others_spend_s_ = costs.spread_s / 2;
    passed_s_ = passed_s;
  }

  /// Counts one blocking call on the communicator; true if due() has something to do.
  bool begin_call() { return ++sequence_ >= next_step_at_; }

  merge_step due() const { return sequence_ < next_step_at_ ? merge_step::none : next_step_; }
  /// The next step of a merge that has begun, even if it is not due.
  merge_step outstanding() const {
    return next_step_ == merge_step::post ? merge_step::none : next_step_;
  }

  /// Begins a merge.
  void post();

  /// The tree of the merge that is under way, or else of the next one.
  const tree_place& tree() const { return trees_[pace_ == 0 ? 1 : 0]; }
  /// Steps `collect` and `deliver`: which of the rank's children in it they are about.
  int child() const { return child_; }

  /// Ends step `collect`: adds the report of child(), as it was received. May be longer than it was
  /// sent if what is behind is `neutral`.
  void add(std::span<const std::int32_t> childs_report);

  /// Ends step `report`: what is to be sent to the parent. Stays the lockstep's and as it is until
  /// the next post(), as reply() does.
  std::span<const std::int32_t> report();
  /// Ends it on the leader.
  void answer();

  /// Step `receive`: where the parent's reply is to be received; received() ends it.
  std::span<std::int32_t> reply_room() { return reply_; }
  void received() { deliver_from(tree().num_children() - 1); }

  /// Ends step `deliver`: what is to be sent to what was child() before.
  std::span<const std::int32_t> reply();

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
        collect_from(child_ + 1);
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
  /// From the next merge on all ranks are native for good, as if they differed.
  void give_up() { poisoned_ = true; }

  /// Which arm the call takes. A settled call costs a few nanoseconds; nothing is allocated except
  /// in the first call of a context.
  timed_call next_call(const context_key& key) {
    if (native_for_good_) return {};
    const int c = find(key);
    if (c < 0) return {};
    context_state& s = contexts_[std::size_t(c)];
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

  /// All ranks: the first plan of a context.
  void adopt(int context, const plan_message& message);

  /// The time of a timed call on this rank, since when the context had been idle there, and whether
  /// the rank's core was given to others meanwhile. A call that failed is not recorded.
  void record(const timed_call& call, double seconds, std::optional<double> gap_s = {},
              bool gave_core = false) {
    if (call.slot < 0 || std::size_t(call.slot) >= queue_.size()) return;
    sample& mine = queue_[std::size_t(call.slot)];
    mine.seconds = float(seconds);
    mine.gap_ticks = gap_s ? std::int32_t(std::clamp(*gap_s * 1e7, 0.0, 1e9)) : neutral;
    mine.gave_core = gave_core;
  }

  /// When a call ended on this rank, and how long before `started_s` the one before it did; nothing
  /// if that one's end was not noted. Any clock that all calls use.
  void note_end(const timed_call& call, double ended_s) {
    context_state& s = contexts_[std::size_t(call.context)];
    s.ended_s = ended_s;
    s.ended_call = s.calls;
  }
  std::optional<double> gap_s(const timed_call& call, double started_s) const {
    const context_state& s = contexts_[std::size_t(call.context)];
    if (s.ended_call + 1 != s.calls) return std::nullopt;
    return started_s - s.ended_s;
  }

  int num_contexts() const { return int(contexts_.size()); }
  const context_key& key(int context) const { return contexts_[std::size_t(context)].key; }
  std::int64_t calls(int context) const { return contexts_[std::size_t(context)].calls; }
  int incumbent(int context) const { return contexts_[std::size_t(context)].incumbent; }
  /// How often the current plan runs an arm: the share of its calls, the same on all ranks. A call
  /// without a context (-1) is always native.
  double share(int context, int arm) const;

  std::int64_t calls() const { return sequence_; }
  std::int64_t merges() const { return merges_; }
  /// Leader only: what a merge costs that is spread over calls, as measured so far.
  double merge_cost_s() const { return merge_costs_.spread_s; }
  /// Leader only: what all merges have cost so far.
  double merges_cost_s() const { return merges_cost_s_; }
  /// Leader only; null if the context is native for good.
  const policy* policy_of(int context) const { return led_[std::size_t(context)].chosen.get(); }
  /// Leader only: arms that ran, in the order of their first call.
  std::vector<arm_record> records(int context) const;
  /// Leader only: how far apart the ranks came to the latest timed calls of which that is known.
  std::span<const double> skews_s(int context) const { return led_[std::size_t(context)].skews_s; }
  /// Leader only: in how many of the timed calls for which all wait a rank's core was given to
  /// others, in [0, 1]; nothing if there were none.
  std::optional<double> core_given_share() const { return sharing_.share(); }

 private:
  static constexpr std::size_t spare_contexts = 4;
  static constexpr int min_samples = 16;
  static constexpr int max_samples = 64;
  static constexpr int incumbent_samples_per_merge = 16;  // per context
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int32_t longest = 1 << 30;

  // The first words of a report. A value and its negative under MIN give minimum and maximum.
  enum report_word : std::size_t {
    sequence_word,
    sequence_negative,
    fingerprint_word,
    fingerprint_negative,
    charge_negative,     // of the last merge, in units of 100 ns
    gave_core_negative,  // watched calls
    report_header_words
  };
  // The first words of a reply.
  enum reply_word : std::size_t {
    size_word,     // of the reply, in words
    agreed_word,   // 0: the ranks differ
    gap_word,      // calls from consuming this merge to posting the next one
    pace_word,     // of the next merge: see pace_
    samples_word,  // room for samples in its report
    plans_word,    // how many plans follow
    reply_header_words
  };
  // A plan in words: these, then its explorations, position << arm_bits | arm.
  enum plan_word : std::size_t {
    context_word,
    incumbent_word,
    stride_word,
    length_word,
    period_word,
    explore_word,
    plan_header_words
  };
  static constexpr int arm_bits = 11;
  static constexpr int max_arms = 1 << arm_bits;
  static constexpr int max_position = (1 << 20) - 1;
  static constexpr std::size_t largest_plan = plan_header_words + epoch_plan::max_explore;
  // The first words of a first plan.
  enum first_plan_word : std::size_t { key_word, call_word, first_pace_word, first_plan_words };
  static_assert(first_plan_words + largest_plan <= plan_message_words);
  // A sample in words; times are logarithms, gaps in units of 100 ns.
  enum sample_word : std::size_t {
    longest_negative,
    shortest_word,
    longest_gap_negative,
    shortest_gap_word,
    sample_words
  };
  static_assert(report_header_words + max_samples * sample_words <= max_report_words);
  static_assert(reply_header_words + largest_plan <= max_reply_words);
  static constexpr std::size_t kept_skews = 64;  // per context

  // What merging may cost: so much of the time spent in the calls, after a few free ones.
  static constexpr double merge_share = 0.01;
  static constexpr double free_merges = 4;
  // Within one call only where that costs no more than so much of a call: the first merge, before
  // which an arm may be played that nobody has tried; while much is to be learnt; and where the
  // next plan is wanted sooner than it would come otherwise. While much is to be learnt, calls may
  // be nothing like their predictions: then also where it costs so much of what passed per call.
  static constexpr int early_merges = 12;
  static constexpr double first_at_once_share = 1, first_all_wait_share = 4,
                          early_at_once_share = 0.15, urgent_at_once_share = 0.5,
                          passed_at_once_share = 0.02;

  struct context_state {
    std::int64_t calls = 0;
    std::int64_t next_event = 0;  // the call at which more is to do than running the incumbent
    std::int32_t incumbent = native_arm;
    std::int32_t stride = 0;  // 0: the incumbent is never timed
    context_key key;
    bool has_plan = false;
    std::int32_t length = 0;
    std::int32_t period = 0;  // 0: the list runs once
    std::int64_t activated_at = 0;
    std::int64_t next_timed = never;
    std::int64_t list_start = 0;  // where the positions of the list count from
    std::uint16_t next_explore = 0;
    std::uint16_t num_explore = 0;
    std::array<std::int32_t, epoch_plan::max_explore> explore{};
    double ended_s = 0;  // a call on this rank, that number
    std::int64_t ended_call = -2;
    // The last call that may not have run the incumbent, and the one before this.
    std::int64_t eventful_call = -2;
    std::int32_t eventful_arm = native_arm, incumbent_before = native_arm;

    std::int32_t arm_before() const {
      if (eventful_call + 1 == calls) return eventful_arm;
      return calls == activated_at ? incumbent_before : incumbent;
    }

    exploration explored(std::size_t i) const {
      return {.position = explore[i] >> arm_bits, .arm = explore[i] & (max_arms - 1)};
    }
  };

  struct sample {
    std::int32_t context;
    std::int32_t arm;
    bool explored;
    std::int64_t call;        // of the context
    std::int32_t arm_before;  // of its call before
    float seconds = -1;       // negative: not recorded
    std::int32_t gap_ticks = neutral;
    bool watches_core = false, gave_core = false;
    bool beside_merge = false;
  };

  // What the leader knows of a context.
  struct led_context {
    std::unique_ptr<policy> chosen;
    std::optional<epoch_plan> outbox;
    int length = 0;                    // of the last plan
    std::int64_t wanted_at = 0;        // call of the context at which a new plan is wanted
    std::int64_t calls_at_answer = 0;  // when the last merge was answered
    std::int64_t calls_accounted = 0;  // in `records`
    std::int64_t explored_since = 0;   // exploring calls among those not yet accounted
    double rate = 1;                   // calls of the context per call of the communicator
    double last_seconds = 0;           // of its latest timed call, on this rank
    std::vector<observation> merged;   // of the merge being consumed
    std::vector<arm_record> records;
    usual_lateness lateness;
    std::vector<double> skews_s;  // the oldest is replaced
    std::size_t next_skew = 0;
    double sampled_s = 0;  // the latest sample, of that call
    std::int64_t sampled_call = -2;

    // As far as anybody knows.
    double taken_before_s(const sample& one) const {
      if (sampled_call + 1 == one.call) return sampled_s;
      const auto believed = chosen->posterior(one.arm_before);
      return believed ? believed->mean_s : 0;
    }

    void keep_skew(double skew_s) {
      if (skews_s.size() < kept_skews)
        skews_s.push_back(skew_s);
      else
        skews_s[next_skew++ % kept_skews] = skew_s;
    }
    /// Of all arms that ran since the last merge, if native is among them.
    void note_meetings() {
      const auto times_of = [&](int arm) {
        std::vector<double> times_s;
        for (const observation& o : merged)
          if (o.arm == arm && o.after_itself) times_s.push_back(o.seconds);
        return times_s;
      };
      const std::vector<double> native_s = times_of(native_arm);
      if (native_s.empty()) return;
      for (arm_record& r : records)
        if (const auto own_s = times_of(r.arm); r.arm != native_arm && !own_s.empty())
          r.meetings.add(own_s, native_s);
    }
    arm_record& record_of(int arm) {
      for (arm_record& r : records)
        if (r.arm == arm) return r;
      records.push_back({.arm = arm});
      return records.back();
    }
  };

  static constexpr std::uint32_t mix(std::uint32_t hash, std::uint64_t value) {
    std::uint64_t h = (hash ^ value) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9u;
    return static_cast<std::uint32_t>(h >> 32);
  }

  int find(const context_key& key) {
    const std::uint32_t packed = key.packed();
    for (std::size_t i = 0; i < recent_keys_.size(); ++i)
      if (recent_keys_[i] == packed) return recent_contexts_[i];
    return look_up(key, packed);
  }
  [[gnu::noinline]] int look_up(const context_key& key, std::uint32_t packed) {
    const std::size_t mask = index_.size() - 1;
    std::size_t i = mix(0, packed) & mask;
    while (index_[i] >= 0 && contexts_[std::size_t(index_[i])].key != key) i = (i + 1) & mask;
    if (index_[i] < 0) {
      if (num_contexts() >= settings_.max_contexts) return no_context;
      if (leader_) led_.emplace_back();
      contexts_.push_back({.key = key});
      any_waits_for_all_ = any_waits_for_all_ || waits_for_all(key.op);
      index_[i] = num_contexts() - 1;
      fingerprint_ = mix(fingerprint_, packed);
      make_room();
    }
    const std::size_t oldest = next_recent_++ % recent_keys_.size();
    recent_keys_[oldest] = packed;
    return recent_contexts_[oldest] = index_[i];
  }

  /// For the next contexts, ahead of time: a rank that had no memory for one in the call in which
  /// it is new could not say what the others do in that call.
  void make_room() {
    if (contexts_.size() < contexts_.capacity() && (!leader_ || led_.size() < led_.capacity()))
      return;
    try {
      contexts_.reserve(2 * contexts_.size());
      if (leader_) led_.reserve(2 * led_.size());
    } catch (const std::bad_alloc&) {  // maybe later
    }
  }

  /// Empty blocks make calls that say nothing of cores: they are asked only if there is no better.
  bool shows_sharing(collective op) const {
    return waits_for_all(op) || (!any_waits_for_all_ && usually_waits_for_all(op));
  }
  timed_call eventful_call(int context);
  bool admit(int context, bool explored);
  static void schedule_event(context_state& s);
  std::span<std::int32_t> words_of_sample(std::size_t i) {
    return std::span(report_).subspan(report_header_words + sample_words * i, sample_words);
  }
  static std::size_t encode(const epoch_plan& p, int context, std::span<std::int32_t> words);
  std::size_t activate(std::span<const std::int32_t> words);
  void account_calls(int context);

  void collect_from(int child);
  void deliver_from(int child);
  bool reports_agree() const;
  void compose_reply();
  double mean_call_s(int context) const;
  std::int32_t pace_for(double call_s, double share) const;
  double merge_cost_s(std::int32_t pace) const {
    return pace == 0 ? merge_costs_.at_once_s : merge_costs_.spread_s;
  }
  // From answering to consuming.
  std::int32_t calls_to_reply() const { return pace_ * tree().height(); }
  void learn();
  void plan_next();
  template <class F>
  static void ask(led_context& led, F question);

  // What every call reads.
  std::int64_t sequence_ = 0;
  std::int64_t next_step_at_ = 2;
  std::vector<context_state> contexts_;
  bool any_waits_for_all_ = false;
  // The contexts of late: most loops of programs have few.
  std::array<std::uint32_t, 4> recent_keys_{~0u, ~0u, ~0u, ~0u};
  std::array<int, 4> recent_contexts_{};
  std::size_t next_recent_ = 0;
  merge_step next_step_ = merge_step::post;
  bool native_for_good_ = false;

  lockstep_settings settings_;
  bool leader_ = false;
  std::array<tree_place, 2> trees_;
  int child_ = 0;
  bool poisoned_ = false;  // this rank saw that the ranks differ; the next merge tells the others
  std::int64_t posted_at_ = 0;
  std::int64_t merges_ = 0;
  std::int32_t pace_ = 1;  // calls that a merge takes for each level of the tree; 0: all at once
  std::int32_t samples_room_ = min_samples;
  std::uint32_t fingerprint_ = mix(protocol_version, 0);
  double steps_began_s_ = 0, charged_s_ = 0;
  std::vector<std::int32_t> index_;  // open addressing: context or -1
  std::vector<sample> queue_;
  std::vector<sample> in_flight_;
  std::vector<std::int32_t> report_, reply_;

  // The leader's.
  std::vector<led_context> led_;
  merge_costs merge_costs_;  // of one
  double passed_s_ = 0;      // per call, before the first one
  // Spread over calls, a message costs its sender and its receiver, one after the other; the rank
  // that spends the most knows of one of them. At most so much more: a rank that is charged more
  // has waited.
  double others_spend_s_ = merge_costs_.spread_s / 2;
  merge_slowdown slowdown_;
  double mean_call_s_ = 0;    // of the calls between the last two answers
  double merges_cost_s_ = 0;  // of all: as measured, the last one as expected
  double expected_cost_s_ = 0;
  double calls_s_ = 0, elapsed_s_ = 0;  // calls with a plan: their sum, and what passed in them
  std::int64_t answered_at_ = 0;
  double answered_s_ = -std::numeric_limits<double>::infinity();  // by the clock of begin_steps()
  core_sharing sharing_;
  std::int64_t waited_calls_ = 0;   // timed ones that show whether cores are shared
  std::int32_t charged_pace_ = -1;  // of the merge before this one; -1: there was none
};

// ---- calls

inline timed_call lockstep::eventful_call(int context) {
  context_state& s = contexts_[std::size_t(context)];
  if (!s.has_plan) return {.context = context, .needs_first_plan = true};
  timed_call call{.context = context, .arm = s.incumbent};
  bool explores = false;
  if (s.next_explore < s.num_explore) {
    const exploration e = s.explored(s.next_explore);
    if (s.list_start + e.position <= s.calls) {
      call.arm = e.arm;
      explores = true;
      if (++s.next_explore == s.num_explore && s.period > 0) {
        s.next_explore = 0;
        s.list_start += s.period;
      }
    }
  }
  if (explores || s.calls >= s.next_timed) {
    if (admit(context, explores)) {
      call.timed = true;
      call.watches_core = shows_sharing(s.key.op) && core_sharing::watched(waited_calls_++);
      call.slot = int(queue_.size());
      queue_.push_back({.context = context,
                        .arm = call.arm,
                        .explored = explores,
                        .call = s.calls,
                        .arm_before = s.arm_before(),
                        .watches_core = call.watches_core,
                        .beside_merge = outstanding() != merge_step::none});
    }
    fingerprint_ = mix(fingerprint_, std::uint64_t(context) << 32 | std::uint32_t(call.arm) << 1 |
                                         std::uint32_t(call.timed));
  }
  if (s.calls >= s.next_timed) {
    // Not exactly every stride calls: the application may have a period, too.
    const auto jitter = std::int32_t(mix(std::uint32_t(s.calls), s.key.packed()) >> 1) % s.stride;
    s.next_timed = s.calls + (s.stride + 1) / 2 + jitter;
  }
  if (leader_ && explores) {
    led_context& led = led_[std::size_t(context)];
    ++led.explored_since;
    ++led.record_of(call.arm).calls;
  }
  s.eventful_call = s.calls;
  s.eventful_arm = call.arm;
  ++s.calls;
  schedule_event(s);
  call.notes_end = s.calls == s.next_event || outstanding() != merge_step::none;
  return call;
}

/// Whether one more timed call fits in the next merge: a decision from values that are equal on all
/// ranks. Explored calls are worth more than further samples of an incumbent; if there are too many
/// of these, every second one is dropped and fewer are made, so that they are of all calls since
/// the last merge and not of the first ones only.
inline bool lockstep::admit(int context, bool explored) {
  // While a merge is under way, the room of the next one is not known yet.
  const int room = outstanding() != merge_step::none ? min_samples : samples_room_;
  const int used = int(queue_.size());
  if (explored) return used < room;
  const auto is_mine = [&](const sample& one) { return one.context == context && !one.explored; };
  const auto mine = std::count_if(queue_.begin(), queue_.end(), is_mine);
  if (used < room * 3 / 4 && mine < incumbent_samples_per_merge) return true;
  if (mine < 4) return false;
  bool drop = false;
  std::erase_if(queue_, [&](const sample& one) { return is_mine(one) && (drop = !drop); });
  std::int32_t& stride = contexts_[std::size_t(context)].stride;
  stride = std::min(2 * stride, longest / 4);
  return true;
}

inline void lockstep::schedule_event(context_state& s) {
  std::int64_t next = s.next_timed;
  if (s.next_explore < s.num_explore)
    next = std::min(next, s.list_start + s.explored(s.next_explore).position);
  s.next_event = std::max(next, s.calls);
}

// ---- plans

/// Writes a plan as words; returns how many, 0 if it does not fit.
inline std::size_t lockstep::encode(const epoch_plan& p, int context,
                                    std::span<std::int32_t> words) {
  const std::size_t count = std::min(p.explore.size(), epoch_plan::max_explore);
  if (plan_header_words + count > words.size()) return 0;
  int position = -1;
  for (std::size_t i = 0; i < count; ++i) {
    position = std::min(std::max(p.explore[i].position, position + 1), max_position);
    words[plan_header_words + i] = position << arm_bits | p.explore[i].arm;
  }
  words[context_word] = context;
  words[incumbent_word] = p.incumbent;
  words[stride_word] = std::clamp(p.timed_stride, 0, longest);
  words[length_word] = std::clamp(p.length, 1, longest);
  words[period_word] = p.period > 0 ? std::clamp(p.period, position + 1, longest) : 0;
  words[explore_word] = std::int32_t(count);
  return plan_header_words + count;
}

/// Makes the plan in `words` its context's current one; returns how many words it has.
inline std::size_t lockstep::activate(std::span<const std::int32_t> words) {
  const int context = words[context_word];
  if (leader_) account_calls(context);
  context_state& s = contexts_[std::size_t(context)];
  s.has_plan = true;
  s.incumbent_before = s.incumbent;
  s.incumbent = words[incumbent_word];
  s.stride = words[stride_word];
  s.length = words[length_word];
  s.period = words[period_word];
  s.activated_at = s.list_start = s.calls;
  s.next_timed = s.stride > 0 ? s.calls : never;
  s.next_explore = 0;
  s.num_explore = std::uint16_t(words[explore_word]);
  std::copy_n(words.begin() + plan_header_words, s.num_explore, s.explore.begin());
  schedule_event(s);
  for (std::size_t i = 0; i < plan_header_words + s.num_explore; ++i)
    fingerprint_ = mix(fingerprint_, std::uint32_t(words[i]));
  return plan_header_words + s.num_explore;
}

inline plan_message lockstep::lead(int context, std::unique_ptr<policy> chosen) {
  led_context& led = led_[std::size_t(context)];
  epoch_plan p{.incumbent = native_arm, .explore = {}, .length = longest, .timed_stride = 0};
  if (chosen) {
    p = chosen->plan({.calls = 0, .merge_cost_s = merge_cost_s(), .pending = {}});
    led.merged.reserve(max_samples);
    led.skews_s.reserve(kept_skews);
    led.records.reserve(chosen->arms().size() + 1);
    led.chosen = std::move(chosen);
  }
  led.length = p.length;
  led.wanted_at = p.length;
  const auto expected = led.chosen ? led.chosen->posterior(p.incumbent) : std::nullopt;
  plan_message message{};
  message[key_word] = std::int32_t(contexts_[std::size_t(context)].key.packed() & 0x7fffffff);
  message[call_word] = std::int32_t(sequence_ & 0x7fffffff);
  const bool all_wait = waits_for_all(contexts_[std::size_t(context)].key.op);
  message[first_pace_word] =
      std::min(pace_for(expected ? expected->mean_s : 0,
                        all_wait ? first_all_wait_share : first_at_once_share),
               pace_for(passed_s_, passed_at_once_share));
  encode(p, context, std::span(message).subspan(first_plan_words));
  return message;
}

inline void lockstep::adopt(int context, const plan_message& message) {
  const context_state& s = contexts_[std::size_t(context)];
  const auto plan = std::span(message).subspan(first_plan_words);
  if (message[key_word] == std::int32_t(s.key.packed() & 0x7fffffff) &&
      message[call_word] == std::int32_t(sequence_ & 0x7fffffff) && plan[context_word] == context) {
    activate(plan);
    if (merges_ == 0 && outstanding() == merge_step::none) pace_ = message[first_pace_word];
    return;
  }
  poisoned_ = true;
  std::array<std::int32_t, plan_header_words> native{};
  encode({.incumbent = native_arm, .explore = {}, .length = longest, .timed_stride = 0}, context,
         native);
  activate(native);
}

inline void lockstep::account_calls(int context) {
  const context_state& s = contexts_[std::size_t(context)];
  led_context& led = led_[std::size_t(context)];
  const std::int64_t calls = s.calls - led.calls_accounted - led.explored_since;
  if (calls > 0 && led.chosen) led.record_of(s.incumbent).calls += calls;
  led.calls_accounted = s.calls;
  led.explored_since = 0;
}

inline std::vector<arm_record> lockstep::records(int context) const {
  const context_state& s = contexts_[std::size_t(context)];
  const led_context& led = led_[std::size_t(context)];
  std::vector<arm_record> result = led.records;
  const std::int64_t calls = s.calls - led.calls_accounted - led.explored_since;
  if (calls <= 0) return result;
  const auto current = std::find_if(result.begin(), result.end(),
                                    [&](const arm_record& r) { return r.arm == s.incumbent; });
  if (current != result.end()) {
    current->calls += calls;
  } else {
    result.push_back({.arm = s.incumbent, .calls = calls});
  }
  return result;
}

inline double lockstep::share(int context, int arm) const {
  if (context < 0) return arm == native_arm ? 1 : 0;
  const context_state& s = contexts_[std::size_t(context)];
  const std::int32_t calls = s.period > 0 ? s.period : s.length;
  if (s.next_explore == s.num_explore || calls < s.num_explore) return arm == s.incumbent ? 1 : 0;
  int explored = 0;
  for (std::size_t i = 0; i < s.num_explore; ++i)
    if (s.explored(i).arm == arm) ++explored;
  const int others = arm == s.incumbent ? calls - s.num_explore : 0;
  return double(explored + others) / calls;
}

// ---- merges

inline void lockstep::post() {
  for (const context_state& s : contexts_) fingerprint_ = mix(fingerprint_, std::uint64_t(s.calls));
  std::swap(queue_, in_flight_);
  queue_.clear();
  report_.assign(report_header_words + sample_words * std::size_t(samples_room_), neutral);

  const auto sequence = std::int32_t(sequence_ & 0x7fffffff);
  const auto fingerprint = std::int32_t(fingerprint_ & 0x7fffffff);
  report_[sequence_word] = sequence;
  report_[sequence_negative] = -sequence;
  report_[fingerprint_word] = poisoned_ ? -1 : fingerprint;
  report_[fingerprint_negative] = poisoned_ ? -1 : -fingerprint;
  report_[charge_negative] = -std::int32_t(std::clamp(charged_s_ * 1e7, 0.0, 1e9));
  charged_s_ = 0;
  report_[gave_core_negative] = -std::int32_t(std::ranges::count_if(
      in_flight_, [](const sample& one) { return one.watches_core && one.gave_core; }));

  for (std::size_t i = 0; i < in_flight_.size(); ++i) {
    const sample& one = in_flight_[i];
    if (one.seconds < 0) continue;
    const std::span words = words_of_sample(i);
    const double scaled = std::log(std::max(double(one.seconds), 1e-9)) * 0x1p20;
    words[shortest_word] = std::int32_t(std::lround(std::min(scaled, 0x1p30)));
    words[longest_negative] = -words[shortest_word];
    if (one.gap_ticks == neutral) continue;
    words[shortest_gap_word] = one.gap_ticks;
    words[longest_gap_negative] = -one.gap_ticks;
  }
  posted_at_ = sequence_;
  collect_from(0);
}

/// Child i is on level i and reports in that call; in the next one it is listened to.
inline void lockstep::collect_from(int child) {
  child_ = child;
  const bool listens = child < tree().num_children();
  next_step_ = listens ? merge_step::collect : merge_step::report;
  next_step_at_ = posted_at_ + std::int64_t(pace_) * (listens ? child + 1 : tree().level());
}

/// The child with most below it first. Each passes the reply on in the call in which it gets it.
inline void lockstep::deliver_from(int child) {
  child_ = child;
  next_step_ = child >= 0 ? merge_step::deliver : merge_step::consume;
  next_step_at_ = posted_at_ + std::int64_t(pace_) * (2 * tree().height() - (child + 1));
}

inline void lockstep::add(std::span<const std::int32_t> childs_report) {
  for (std::size_t i = 0; i < report_.size(); ++i)
    report_[i] = std::min(report_[i], childs_report[i]);
  collect_from(child_ + 1);
}

inline std::span<const std::int32_t> lockstep::report() {
  next_step_ = merge_step::receive;
  next_step_at_ = posted_at_ + std::int64_t(pace_) * (2 * tree().height() - tree().level());
  return report_;
}

inline bool lockstep::reports_agree() const {
  return report_[sequence_word] == -report_[sequence_negative] &&
         report_[fingerprint_word] == -report_[fingerprint_negative];
}

inline void lockstep::answer() {
  deliver_from(tree().num_children() - 1);
  reply_[agreed_word] = reports_agree() ? 1 : 0;
  reply_[size_word] = reply_header_words;
  if (!reply_[agreed_word]) return;
  learn();
  plan_next();
  compose_reply();
}

inline std::span<const std::int32_t> lockstep::reply() {
  deliver_from(child_ - 1);
  return std::span(reply_).first(std::size_t(reply_[size_word]));
}

inline merge_outcome lockstep::consume() {
  ++merges_;
  next_step_ = merge_step::post;
  if (!reply_[agreed_word]) {
    native_for_good_ = true;
    next_step_at_ = never;
    return merge_outcome::mismatch;
  }
  next_step_at_ = sequence_ + reply_[gap_word];
  pace_ = reply_[pace_word];
  samples_room_ = reply_[samples_word];
  auto rest = std::span<const std::int32_t>(reply_).subspan(reply_header_words);
  for (int left = reply_[plans_word]; left > 0; --left) rest = rest.subspan(activate(rest));
  return merge_outcome::agreed;
}

/// What a call of the context takes on average, as far as the leader knows.
inline double lockstep::mean_call_s(int context) const {
  const led_context& led = led_[std::size_t(context)];
  if (led.chosen)
    if (const auto p = led.chosen->posterior(contexts_[std::size_t(context)].incumbent))
      return p->mean_s;
  return led.last_seconds;
}

/// All at once where that costs no more than `share` of a call.
inline std::int32_t lockstep::pace_for(double call_s, double share) const {
  return share > 0 && merge_costs_.at_once_s <= share * call_s ? 0 : 1;
}

/// The plans that were made, and the next merge: as soon as a context wants a plan, as late as the
/// cost of merging asks.
inline void lockstep::compose_reply() {
  const double calls = double(std::max<std::int64_t>(1, sequence_ - answered_at_));
  answered_at_ = sequence_;
  auto rest = std::span(reply_).subspan(reply_header_words);
  std::int32_t shipped = 0;
  double gap = longest, call_s = 0, new_calls_s = 0;
  bool urgent = false;
  for (int c = 0; c < num_contexts(); ++c) {
    const context_state& s = contexts_[std::size_t(c)];
    led_context& led = led_[std::size_t(c)];
    const double new_calls = double(s.calls - led.calls_at_answer);
    led.calls_at_answer = s.calls;
    led.rate = new_calls / calls;
    if (led.outbox) {
      if (const std::size_t used = encode(*led.outbox, c, rest)) {
        rest = rest.subspan(used);
        ++shipped;
        led.length = led.outbox->length;
        led.wanted_at = s.calls + std::int64_t(calls_to_reply() * led.rate) + led.length;
        led.outbox.reset();
      }
    }
    if (new_calls == 0 || !led.chosen) continue;
    const double mean_s = mean_call_s(c);
    new_calls_s += new_calls * mean_s;
    call_s += led.rate * mean_s;
    urgent = urgent || led.length < 2 * trees_[0].height();
    const double remaining = led.outbox ? 0 : double(led.wanted_at - s.calls);
    gap = std::min(gap, remaining / led.rate - calls_to_reply());
  }
  // Calls of different ranks may overlap, and the program may compute between them.
  calls_s_ += new_calls_s;
  elapsed_s_ += std::min(new_calls_s, steps_began_s_ - answered_s_);
  answered_s_ = steps_began_s_;
  mean_call_s_ = call_s;
  if (gap == longest) gap = 2 * calls;  // no tuned context was used: look again later, ever later
  const bool early = merges_ < early_merges;
  const std::int32_t pace = std::min(pace_for(call_s, early    ? early_at_once_share
                                                      : urgent ? urgent_at_once_share
                                                               : 0),
                                     pace_for(passed_s_, early ? passed_at_once_share : 0));
  const double spare_s =
      (free_merges - 1) * merge_cost_s(pace) + call_s + merge_share * elapsed_s_ - merges_cost_s_;
  if (spare_s < 0 && call_s > 0) {
    const double earned_s = merge_share * call_s * elapsed_s_ / calls_s_;  // by each call to come
    gap = std::max(gap, -spare_s / earned_s - calls_to_reply());
  }
  const auto pause = std::int32_t(std::clamp(gap, 0.0, double(longest)));
  reply_[gap_word] = pause;
  reply_[pace_word] = pace;
  const double between = double(pause) + calls_to_reply();
  reply_[samples_word] = between <= min_samples       ? min_samples
                         : between <= 2 * min_samples ? 2 * min_samples
                                                      : max_samples;
  reply_[plans_word] = shipped;
  reply_[size_word] = std::int32_t(reply_.size() - rest.size());
}

inline void lockstep::learn() {
  if (charged_pace_ >= 0) {
    // One late rank must not silence the learning: a single merge counts four times the usual.
    double& usual_s = charged_pace_ == 0 ? merge_costs_.at_once_s : merge_costs_.spread_s;
    const double charged_s = -1e-7 * report_[charge_negative];
    const double others_s = charged_pace_ == 0 ? 0 : std::min(charged_s, others_spend_s_);
    const double held_up_s = charged_pace_ == 0 || !sharing_.is_usual()
                                 ? 0
                                 : 2 * trees_[0].height() * slowdown_.of_a_call() * mean_call_s_;
    const double cost_s = std::max(std::min(charged_s + others_s, 4 * usual_s), held_up_s);
    merges_cost_s_ += cost_s - expected_cost_s_;
    // The first ones count more: what was expected may be far off.
    usual_s += std::max(0.25, 1.0 / double(merges_)) * (cost_s - usual_s);
  }
  charged_pace_ = pace_;
  expected_cost_s_ = merge_cost_s(pace_);
  merges_cost_s_ += expected_cost_s_;

  sharing_.learn(
      int(std::ranges::count_if(
          in_flight_, [&](const sample& one) { return one.seconds > 0 && one.watches_core; })),
      -report_[gave_core_negative]);
  for (std::size_t i = 0; i < in_flight_.size(); ++i) {
    const sample& one = in_flight_[i];
    const std::span words = words_of_sample(i);
    led_context& led = led_[std::size_t(one.context)];
    if (one.seconds > 0) led.last_seconds = one.seconds;
    if (words[longest_negative] == neutral) continue;
    const context_state& s = contexts_[std::size_t(one.context)];
    if (!led.chosen) continue;
    call_times times{.longest_s = std::exp(-0x1p-20 * words[longest_negative]),
                     .shortest_s = std::exp(0x1p-20 * words[shortest_word])};
    if (words[shortest_gap_word] != neutral) {
      times.longest_gap_s = -1e-7 * words[longest_gap_negative];
      times.shortest_gap_s = 1e-7 * words[shortest_gap_word];
    }
    if (const auto skew = skew_s(times)) led.keep_skew(*skew);
    const double before_s = led.taken_before_s(one);
    led.lateness.learn(times, before_s);
    const bool skew_is_lateness = !sharing_.is_usual() || led.lateness.is_most();
    const double seconds = duration_s(s.key.op, times, skew_is_lateness,
                                      led.lateness.finishing_s(before_s)),
                 log_s = std::log(seconds);
    const bool skew_counts = !skew_is_lateness || !waits_for_all(s.key.op);
    if (!one.explored && skew_counts && usually_waits_for_all(s.key.op))
      if (const auto expected = led.chosen->posterior(one.arm))
        slowdown_.learn(seconds / expected->mean_s, one.beside_merge);
    led.sampled_s = seconds;
    led.sampled_call = one.call;
    led.merged.push_back({.arm = one.arm,
                          .seconds = seconds,
                          .after_itself = one.arm == one.arm_before || waits_for_all(s.key.op)});
    arm_record& record = led.record_of(one.arm);
    ++record.samples;
    record.sum_s += seconds;
    record.sum_log += log_s;
    record.sum_log_squared += log_s * log_s;
    if (one.explored)
      if (const auto incumbent = led.chosen->posterior(s.incumbent))
        record.exploration_cost_s += seconds - incumbent->mean_s;
  }
  for (std::size_t c = 0; c < led_.size(); ++c) {
    if (led_[c].merged.empty()) continue;
    ask(led_[c], [&](policy& p) {
      led_[c].note_meetings();
      p.learn(led_[c].merged, contexts_[c].calls);
    });
  }
}

/// Without memory a policy is left in a state that nobody knows: the context keeps its plan then.
template <class F>
void lockstep::ask(led_context& led, F question) {
  try {
    question(*led.chosen);
  } catch (const std::bad_alloc&) {
    led.chosen.reset();
    led.merged.clear();
    led.outbox.reset();
  }
}

/// New plans for the contexts that have learnt something.
inline void lockstep::plan_next() {
  for (int c = 0; c < num_contexts(); ++c) {
    const context_state& s = contexts_[std::size_t(c)];
    led_context& led = led_[std::size_t(c)];
    if (led.merged.empty()) {
      // Wanted a plan, but had nothing to learn from: do not make everybody wait for it.
      if (led.chosen && !led.outbox && led.wanted_at <= s.calls) led.wanted_at = s.calls + s.length;
      continue;
    }
    led.merged.clear();
    ask(led, [&](policy& p) {
      std::vector<int> pending;
      for (const sample& one : queue_)
        if (one.context == c) pending.push_back(one.arm);
      // Those of the present plan that still come before the reply.
      const std::int64_t left = s.calls + std::int64_t(calls_to_reply() * led.rate);
      for (std::size_t i = s.next_explore; i < s.num_explore && s.period == 0; ++i)
        if (const exploration e = s.explored(i); s.list_start + e.position < left)
          pending.push_back(e.arm);
      led.outbox = p.plan({.calls = s.calls,
                           .merge_cost_s = merge_cost_s(),
                           .reply_calls = 2 * calls_to_reply() * led.rate,
                           .pending = pending});
    });
  }
}

}  // namespace railpass::select

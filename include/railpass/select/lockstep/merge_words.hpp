// SPDX-License-Identifier: BSL-1.0
//
// The messages that keep the plans of all ranks equal, as words of 32 bits: plans, the reports of
// synchronisations, and the leader's replies.
#pragma once

#include "railpass/select/lockstep/clock_offset.hpp"
#include "railpass/select/lockstep/dependence.hpp"
#include "railpass/select/lockstep/skew.hpp"
#include "railpass/select/policy/policy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace railpass::select {

/// The longest plan, stride or pause, in calls; stands for forever.
inline constexpr std::int32_t longest_epoch = 1 << 30;

/// The words of a context's epoch_plan; its explorations follow.
struct plan_words {
  enum : std::size_t {
    context,
    incumbent,
    stride,
    length,
    period,
    flags,
    check_stride,
    first_checks,
    explorations,
    header
  };
  static constexpr std::int32_t settled = 1, asks_size = 2;  // flags
  static constexpr std::size_t most = header + epoch_plan::max_explore;
  static constexpr int arm_bits = 11;
  static constexpr int max_arms = 1 << arm_bits;
  static constexpr int max_position = (1 << 20) - 1;

  static exploration exploration_of(std::int32_t word) {
    return {.position = word >> arm_bits, .arm = word & (max_arms - 1)};
  }
  /// Returns the number of words written; 0 if the plan does not fit.
  static std::size_t write(const epoch_plan& p, int of_context, std::span<std::int32_t> words) {
    const std::size_t count = std::min(p.explore.size(), epoch_plan::max_explore);
    if (header + count > words.size()) return 0;
    int position = -1;
    for (std::size_t i = 0; i < count; ++i) {
      position = std::min(std::max(p.explore[i].position, position + 1), max_position);
      words[header + i] = position << arm_bits | p.explore[i].arm;
    }
    words[context] = of_context;
    words[incumbent] = p.incumbent;
    words[stride] = std::clamp(p.timed_stride, 0, longest_epoch);
    words[length] = std::clamp(p.length, 1, longest_epoch);
    words[period] = p.period > 0 ? std::clamp(p.period, position + 1, longest_epoch) : 0;
    words[flags] = (p.settled ? settled : 0) | (p.asks_size ? asks_size : 0);
    words[check_stride] = std::clamp(p.check_stride, 0, longest_epoch);
    words[first_checks] = p.first_checks;
    words[explorations] = std::int32_t(count);
    return header + count;
  }
};

/// The first plan of a context as broadcast: these words, then the plan's.
inline constexpr int plan_message_words = 64;
using plan_message = std::array<std::int32_t, plan_message_words>;
struct first_plan_words {
  // The next synchronisation, unless one starts sooner or is in progress: its distance in calls and
  // its pace.
  enum : std::size_t { key, call, gap, pace, header };
};
static_assert(first_plan_words::header + plan_words::most <= plan_message_words);

/// A rank's view of the size of a timed call whose lengths only pairs of ranks know.
struct rank_size {
  std::int64_t bytes = -1;  ///< sent or received, the larger; negative: all ranks know the size
  double asked_s = -1;      ///< time to ask all ranks for the size; negative: not asked
};
/// The size of a call over all ranks.
struct call_size {
  double bytes = 0;                 ///< on the rank with the most
  std::optional<double> asked_s{};  ///< on the last rank: the least
};

/// A call that was to be timed, as seen by this rank.
struct timed_sample {
  static constexpr std::int32_t no_gap = std::numeric_limits<std::int32_t>::max();

  std::int32_t context;
  std::int32_t arm;
  bool explored;
  std::int64_t call;        // of the context
  std::int32_t arm_before;  // of the context's call before
  float seconds = -1;       // negative: not recorded
  std::int32_t gap_ticks = no_gap;
  bool watches_core = false, gave_core = false;
  bool beside_merge = false;
  // By this rank's clock; useful if the ranks have agreed on a common clock.
  rank_role role{};
  double came_s = 0, left_s = 0;
  double next_s = -1;  // arrival at the next call on the communicator; negative: unknown
  rank_size size{};
};

/// Findings of one rank that concern all ranks.
struct rank_findings {
  bool refuses_copies = false;  ///< the kernel refuses single copies
  bool has_device = false;      ///< buffers may be in GPU memory, which schedules must not access
  bool lacks_clock = false;     ///< the rank measures by a clock of its own
  bool has_exclusions = false;  ///< that the communicator's ranks have not united
};

/// The report of a synchronisation. Every rank writes its own report and adds the reports of its
/// children: the minimum of each word. A value and its negative give minimum and maximum.
class merge_report {
 public:
  static constexpr int max_words = 907;
  static constexpr int min_samples = 16, max_samples = 64;
  static constexpr std::int32_t neutral = std::numeric_limits<std::int32_t>::max();  ///< of MIN

  merge_report() { words_.reserve(max_words); }

  /// Called before the first write(), on all ranks, because reports with a clock have more words.
  void share_clock() { shares_clock_ = true; }

  /// Writes this rank's own report.
  /// @param state equal if the ranks have made the same calls so far; -1: they have not
  /// @param charged_s cost of the last synchronisation for this rank
  /// @param room number of samples with room in the report, the same on all ranks
  /// @param clock difference between the agreed clock and the samples' clock
  void write(std::int64_t call, std::int32_t state, double charged_s, const rank_findings& found,
             std::span<const timed_sample> samples, int room, const clock_offset& clock = {}) {
    room_ = std::size_t(room);
    words_.assign(at_stamps(shares_clock_ ? room_ : 0), neutral);
    words_[call_word] = std::int32_t(call & 0x7fffffff);
    words_[call_negative] = -words_[call_word];
    words_[state_word] = state;
    words_[state_negative] = state < 0 ? -1 : -state;
    words_[charge_negative] = -std::int32_t(std::clamp(charged_s * 1e7, 0.0, 1e9));
    words_[refuses_copies_negative] = found.refuses_copies ? -1 : 0;
    words_[has_device_negative] = found.has_device ? -1 : 0;
    words_[lacks_clock_negative] = found.lacks_clock || !clock.is_known() ? -1 : 0;
    words_[has_exclusions_negative] = found.has_exclusions ? -1 : 0;
    words_[clock_error_negative] = 0;
    words_[gave_core_negative] = -std::int32_t(std::ranges::count_if(
        samples, [](const timed_sample& one) { return one.watches_core && one.gave_core; }));
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const timed_sample& one = samples[i];
      if (one.seconds < 0) continue;
      const std::span words = std::span(words_).subspan(at_sample(i), sample_words);
      const double scaled = std::log(std::max(double(one.seconds), 1e-9)) * 0x1p20;
      words[shortest_word] = std::int32_t(std::lround(std::min(scaled, 0x1p30)));
      words[longest_negative] = -words[shortest_word];
      if (one.gap_ticks != timed_sample::no_gap) {
        words[shortest_gap_word] = one.gap_ticks;
        words[longest_gap_negative] = -one.gap_ticks;
      }
      if (one.size.bytes >= 0)
        words[largest_size_negative] = -std::bit_cast<std::int32_t>(float(one.size.bytes));
      if (one.size.asked_s >= 0)
        words[shortest_asking_word] =
            std::int32_t(std::lround(std::min(1e9 * one.size.asked_s, 1e9)));
      if (shares_clock_ && one.next_s >= 0 && clock.is_known()) write_stamps(i, one, clock);
    }
  }

  /// Adds a child's report, which may be longer if the rest is `neutral`.
  void add(std::span<const std::int32_t> childs_words) {
    const std::size_t plain = at_stamps(0);
    for (std::size_t i = 0; i < plain; ++i) words_[i] = std::min(words_[i], childs_words[i]);
    for (std::size_t i = plain; i < words_.size(); i += stamp_words) add_stamps(i, childs_words);
  }

  std::span<const std::int32_t> words() const { return words_; }

  // The following members are about all ranks whose reports have been added.

  bool agrees() const {
    return words_[call_word] == -words_[call_negative] &&
           words_[state_word] == -words_[state_negative];
  }
  /// On the most charged rank.
  double charged_s() const { return -1e-7 * words_[charge_negative]; }
  int gave_core() const { return -words_[gave_core_negative]; }
  rank_findings found() const {
    return {.refuses_copies = words_[refuses_copies_negative] != 0,
            .has_device = words_[has_device_negative] != 0,
            .lacks_clock = words_[lacks_clock_negative] != 0,
            .has_exclusions = words_[has_exclusions_negative] != 0};
  }
  /// The times of the i-th sample; empty if no rank recorded the sample.
  std::optional<call_times> times(std::size_t i) const {
    const std::span words = std::span(words_).subspan(at_sample(i), sample_words);
    if (words[longest_negative] == neutral) return std::nullopt;
    call_times times{.longest_s = std::exp(-0x1p-20 * words[longest_negative]),
                     .shortest_s = std::exp(0x1p-20 * words[shortest_word])};
    if (words[shortest_gap_word] != neutral) {
      times.longest_gap_s = -1e-7 * words[longest_gap_negative];
      times.shortest_gap_s = 1e-7 * words[shortest_gap_word];
    }
    if (shares_clock_ && !found().lacks_clock) times.on_shared_clock = stamps(i);
    return times;
  }
  /// The size of the i-th sample; empty if all ranks know it.
  std::optional<call_size> size(std::size_t i) const {
    const std::span words = std::span(words_).subspan(at_sample(i), sample_words);
    if (words[largest_size_negative] == neutral) return std::nullopt;
    call_size size{.bytes = std::bit_cast<float>(-words[largest_size_negative])};
    if (words[shortest_asking_word] != neutral) size.asked_s = 1e-9 * words[shortest_asking_word];
    return size;
  }

 private:
  enum : std::size_t {
    call_word,
    call_negative,
    state_word,
    state_negative,
    charge_negative,     // in units of 100 ns
    gave_core_negative,  // watched calls
    refuses_copies_negative,
    has_device_negative,
    lacks_clock_negative,
    has_exclusions_negative,
    clock_error_negative,  // in ns, the largest of any sample
    header
  };
  // A sample: times as logarithms, gaps in units of 100 ns, sizes as the bits of floats (whose
  // order is that of the floats), asking in ns.
  enum : std::size_t {
    longest_negative,
    shortest_word,
    longest_gap_negative,
    shortest_gap_word,
    largest_size_negative,
    shortest_asking_word,
    sample_words
  };
  // After all samples: for each sample four stamps by the shared clock, as negative nanoseconds in
  // two words each. The second and third stamp are of the rank of the first. The third and fourth
  // stamp are four times the nanoseconds. The third stamp adds 1 if the rank waits, or 2 if the
  // rank waits for lower ranks only. Its nanoseconds are then the arrival of the last awaited rank
  // and itself.
  enum : std::size_t { next_stamp, left_stamp, came_stamp, ready_stamp, num_stamps };
  static constexpr std::size_t stamp_words = 2 * num_stamps;
  static_assert(header + max_samples * (sample_words + stamp_words) <= max_words);
  // In nanoseconds. Ranks that arrive at their next call within `together` may have waited for each
  // other by messages of the program: the first of them has held up the others. Among ranks that
  // arrive within `at_once`, or whose clocks are less exact than `exact` (the time of a message),
  // the rank that left last counts.
  static constexpr std::int64_t together = 5000, at_once = 500, exact = 2000;

  enum : std::int64_t { for_none, for_all, for_lower };  // whom the rank waits for
  static std::int64_t waiting_of(rank_role role) {
    if (!role.waits()) return for_none;
    return role.of == dependence::on_lower ? for_lower : for_all;
  }

  static std::size_t at_sample(std::size_t i) { return header + sample_words * i; }
  std::size_t at_stamps(std::size_t i) const { return at_sample(room_) + stamp_words * i; }

  static std::int64_t stamp(std::span<const std::int32_t> words, std::size_t at) {
    return std::int64_t(std::uint64_t(std::uint32_t(words[at])) << 32 |
                        std::uint32_t(words[at + 1]));
  }
  void put(std::size_t at, std::int64_t value) {
    words_[at] = std::int32_t(value >> 32);
    words_[at + 1] = std::int32_t(value & 0xffffffff);
  }

  void write_stamps(std::size_t i, const timed_sample& one, const clock_offset& clock) {
    const double offset_s = clock.offset_s(one.came_s), error_s = clock.error_s(one.came_s);
    words_[clock_error_negative] =
        std::min(words_[clock_error_negative], -std::int32_t(std::min(1e9 * error_s, 1e9)));
    const auto put_stamp = [&](std::size_t which, std::int64_t value) {
      put(at_stamps(i) + 2 * which, -value);
    };
    const auto ns = [](double seconds) -> std::int64_t { return std::llround(1e9 * seconds); };
    put_stamp(next_stamp, ns(one.next_s + clock.offset_s(one.next_s)));
    put_stamp(left_stamp, ns(one.left_s + offset_s));
    put_stamp(came_stamp, 4 * ns(one.came_s + offset_s) + waiting_of(one.role));
    if (one.role.is_awaited()) put_stamp(ready_stamp, 4 * ns(one.came_s + offset_s));
  }
  void add_stamps(std::size_t at, std::span<const std::int32_t> childs_words) {
    const auto mine = [&](std::size_t which) { return stamp(words_, at + 2 * which); };
    const auto childs = [&](std::size_t which) { return stamp(childs_words, at + 2 * which); };
    const std::int64_t its = childs(next_stamp), own = mine(next_stamp);  // the later, the less
    const std::int64_t error = -words_[clock_error_negative], reach = together + 2 * error;
    const bool apart = its + reach < own || own + reach < its;
    const bool same = !apart && (error > exact || std::abs(its - own) <= at_once);
    const bool child_held_up = apart  ? its < own
                               : same ? childs(left_stamp) < mine(left_stamp)
                                      : its > own;
    // All ranks of the child are higher than the ranks added before.
    if (child_held_up) {
      const std::int64_t came = childs(came_stamp);
      for (const std::size_t which : {next_stamp, left_stamp}) put(at + 2 * which, childs(which));
      put(at + 2 * came_stamp,
          -came % 4 == for_lower ? std::min(came, mine(ready_stamp) - for_lower) : came);
    }
    put(at + 2 * ready_stamp, std::min(mine(ready_stamp), childs(ready_stamp)));
  }
  std::optional<shared_clock_times> stamps(std::size_t i) const {
    const std::size_t at = at_stamps(i);
    if (words_[at + 2 * next_stamp] == neutral || words_[at + 2 * ready_stamp] == neutral)
      return std::nullopt;
    const auto value = [&](std::size_t which) { return -stamp(words_, at + 2 * which); };
    const std::int64_t came_ns = value(came_stamp) / 4, ready_ns = value(ready_stamp) / 4;
    return shared_clock_times{.came_s = 1e-9 * double(came_ns),
                              .left_s = 1e-9 * double(value(left_stamp)),
                              .waits = value(came_stamp) % 4 == for_all,
                              .ready_s = 1e-9 * double(ready_ns),
                              .error_s = -1e-9 * words_[clock_error_negative]};
  }

  std::vector<std::int32_t> words_;
  std::size_t room_ = 0;  // for samples
  bool shares_clock_ = false;
};

/// Time and form of the next synchronisation.
struct next_merge {
  std::int32_t gap = 0;      ///< calls from consuming this synchronisation to posting the next
  std::int32_t pace = 1;     ///< calls for each level of the tree; 0: all levels in one call
  std::int32_t samples = 0;  ///< room for samples in its reports
};

/// The leader's reply to a synchronisation: the next synchronisation and new plans.
class merge_reply {
 public:
  static constexpr int max_words = 512;

  merge_reply() : words_(max_words, 0) {}

  /// Room for the parent's reply.
  std::span<std::int32_t> room() { return words_; }
  std::span<const std::int32_t> words() const {
    return std::span(words_).first(std::size_t(words_[size_word]));
  }

  /// Starts a reply. If the ranks do not agree, the reply contains only that and the findings;
  /// otherwise the next synchronisation and as many plans as fit.
  void begin(bool agreed) {
    words_[agreed_word] = agreed ? 1 : 0;
    words_[size_word] = header;
    words_[plans_word] = 0;
  }
  /// Returns false if the plan does not fit.
  bool add(const epoch_plan& p, int context) {
    const std::size_t used =
        plan_words::write(p, context, std::span(words_).subspan(std::size_t(words_[size_word])));
    if (used == 0) return false;
    words_[size_word] += std::int32_t(used);
    ++words_[plans_word];
    return true;
  }
  void set(const next_merge& next) {
    words_[gap_word] = next.gap;
    words_[pace_word] = next.pace;
    words_[samples_word] = next.samples;
  }

  void set(const rank_findings& found) {
    words_[refuses_copies_word] = found.refuses_copies ? 1 : 0;
    words_[has_device_word] = found.has_device ? 1 : 0;
    words_[has_exclusions_word] = found.has_exclusions ? 1 : 0;
  }

  bool agreed() const { return words_[agreed_word] != 0; }
  rank_findings found() const {
    return {.refuses_copies = words_[refuses_copies_word] != 0,
            .has_device = words_[has_device_word] != 0,
            .has_exclusions = words_[has_exclusions_word] != 0};
  }
  next_merge next() const {
    return {.gap = words_[gap_word], .pace = words_[pace_word], .samples = words_[samples_word]};
  }
  /// Calls `activate` at each plan with the rest of the words; `activate` returns the number of the
  /// plan's words.
  template <class Activate>
  void for_each_plan(const Activate& activate) const {
    auto rest = std::span<const std::int32_t>(words_).subspan(header);
    for (int left = words_[plans_word]; left > 0; --left) rest = rest.subspan(activate(rest));
  }

 private:
  enum : std::size_t {
    size_word,    // of the reply, in words
    agreed_word,  // 0: the ranks differ, or one has a device
    gap_word,
    pace_word,
    samples_word,
    refuses_copies_word,
    has_device_word,
    has_exclusions_word,
    plans_word,  // number of plans that follow
    header
  };
  static_assert(header + plan_words::most <= max_words);

  std::vector<std::int32_t> words_;
};

}  // namespace railpass::select

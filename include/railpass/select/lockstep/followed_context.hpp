// SPDX-License-Identifier: BSL-1.0
//
// Every rank's state of a context: the current plan and the position of the calls in it. The state
// is integers only, so that all ranks choose alike without a message. Times are in leader.hpp.
#pragma once

#include "railpass/base/hash.hpp"
#include "railpass/select/lockstep/check_schedule.hpp"
#include "railpass/select/lockstep/context.hpp"
#include "railpass/select/lockstep/merge_words.hpp"
#include "railpass/select/policy/policy.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace railpass::select {

/// The number of the native arm in every arms_of(op), and of a function set's first version.
inline constexpr int native_arm = 0;

/// Native without timing, permanently. Allocates no memory.
inline epoch_plan native_plan() {
  return {.incumbent = native_arm, .explore = {}, .length = longest_epoch, .timed_stride = 0};
}

struct followed_context {
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  std::int64_t calls = 0;
  std::int64_t next_event = 0;  // the next call that does more than run the incumbent
  std::int32_t incumbent = native_arm;
  std::int32_t stride = 0;  // 0: the incumbent is never timed
  context_id id;
  bool has_plan = false;
  bool found_best = false;  // by the leader's estimate
  bool asks_size = false;   // its calls belong to the contexts of single sizes
  std::int32_t length = 0;
  std::int32_t period = 0;  // 0: the list runs once
  std::int64_t activated_at = 0;
  std::int64_t next_timed = never;
  std::int64_t settled_since = 0;
  std::int64_t list_start = 0;  // the call at which the list's positions start
  std::uint16_t next_explore = 0;
  std::uint16_t num_explore = 0;
  std::array<std::int32_t, epoch_plan::max_explore> explore{};
  double ended_s = 0;  // end of a call on this rank, and that call's number
  std::int64_t ended_call = -2;
  // The last call that may have run another arm than the incumbent, and its predecessor's arm.
  std::int64_t eventful_call = -2;
  std::int32_t eventful_arm = native_arm, incumbent_before = native_arm;
  check_schedule checks{};

  std::int32_t arm_before() const {
    if (eventful_call + 1 == calls) return eventful_arm;
    return calls == activated_at ? incumbent_before : incumbent;
  }

  exploration explored(std::size_t i) const { return plan_words::exploration_of(explore[i]); }

  /// Takes the arm that this call must explore; empty: the call runs the incumbent.
  std::optional<std::int32_t> take_exploration() {
    if (next_explore >= num_explore) return std::nullopt;
    const exploration e = explored(next_explore);
    if (list_start + e.position > calls) return std::nullopt;
    if (++next_explore == num_explore && period > 0) {
      next_explore = 0;
      list_start += period;
    }
    return e.arm;
  }

  /// Adds jitter to the stride, because the application may be periodic, too.
  void schedule_timed() {
    const auto jitter = std::int32_t(mix(std::uint32_t(calls), id.number) >> 1) % stride;
    next_timed = calls + (stride + 1) / 2 + jitter;
  }

  /// Ends a call that may have run another arm than the incumbent.
  void end_eventful(std::int32_t arm) {
    eventful_call = calls;
    eventful_arm = arm;
    ++calls;
    schedule_event();
  }

  /// Makes the plan in `words` the current plan; returns its number of words.
  std::size_t activate(std::span<const std::int32_t> words) {
    const bool was_quiet = tries_little();
    has_plan = true;
    incumbent_before = incumbent;
    incumbent = words[plan_words::incumbent];
    stride = words[plan_words::stride];
    length = words[plan_words::length];
    period = words[plan_words::period];
    found_best = (words[plan_words::flags] & plan_words::settled) != 0;
    asks_size = (words[plan_words::flags] & plan_words::asks_size) != 0;
    activated_at = list_start = calls;
    next_timed = stride > 0 ? calls : never;
    next_explore = 0;
    num_explore = std::uint16_t(words[plan_words::explorations]);
    std::copy_n(words.begin() + plan_words::header, num_explore, explore.begin());
    if (!was_quiet || incumbent != incumbent_before) settled_since = calls;
    checks.follow(words[plan_words::check_stride], words[plan_words::first_checks], calls,
                  incumbent);
    schedule_event();
    return plan_words::header + num_explore;
  }

  /// The share of the plan's calls that run `arm`.
  double share(int arm) const {
    const std::int32_t in_all = period > 0 ? period : length;
    if (next_explore == num_explore || in_all < num_explore) return arm == incumbent ? 1 : 0;
    int explores = 0;
    for (std::size_t i = 0; i < num_explore; ++i)
      if (explored(i).arm == arm) ++explores;
    const int others = arm == incumbent ? in_all - num_explore : 0;
    return double(explores + others) / in_all;
  }

  /// Whether the choice has converged: no other arm is likely to be clearly faster, or plans keep
  /// the incumbent for long enough and try little else.
  bool is_settled() const {
    constexpr std::int64_t long_enough = 32;
    return found_best || (tries_little() && activated_at + length - settled_since >= long_enough);
  }

 private:
  bool tries_little() const {
    constexpr int rarely = 4;  // once in this many calls
    int tried = 0;
    for (std::size_t i = 0; i < num_explore; ++i)
      if (const exploration e = explored(i); e.position < length && e.arm != incumbent) ++tried;
    return has_plan && tried * rarely <= length;
  }

  void schedule_event() {
    std::int64_t next = std::min(next_timed, checks.next());
    if (next_explore < num_explore)
      next = std::min(next, list_start + explored(next_explore).position);
    next_event = std::max(next, calls);
  }
};

}  // namespace railpass::select

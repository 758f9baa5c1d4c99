// SPDX-License-Identifier: BSL-1.0
//
// What every rank keeps of a context, integers only: the plan that is followed, and how far the
// calls have come in it. So all ranks choose alike without a message.
#pragma once

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

/// Native, untimed, for good. Needs no memory.
inline epoch_plan native_plan() {
  return {.incumbent = native_arm, .explore = {}, .length = longest_epoch, .timed_stride = 0};
}

/// Of what must be equal on all ranks; also where something is to look random and be so.
constexpr std::uint32_t mix(std::uint32_t hash, std::uint64_t value) {
  std::uint64_t h = (hash ^ value) * 0x9e3779b97f4a7c15u;
  h ^= h >> 29;
  h *= 0xbf58476d1ce4e5b9u;
  return static_cast<std::uint32_t>(h >> 32);
}

struct followed_context {
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  std::int64_t calls = 0;
  std::int64_t next_event = 0;  // the call at which more is to do than running the incumbent
  std::int32_t incumbent = native_arm;
  std::int32_t stride = 0;  // 0: the incumbent is never timed
  context_id id;
  bool has_plan = false;
  bool found_best = false;  // as far as the leader knows
  bool asks_size = false;   // its calls are those of the contexts of single sizes
  std::int32_t length = 0;
  std::int32_t period = 0;  // 0: the list runs once
  std::int64_t activated_at = 0;
  std::int64_t next_timed = never;
  std::int64_t settled_since = 0;
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

  exploration explored(std::size_t i) const { return plan_words::exploration_of(explore[i]); }

  /// The arm that this call is to explore, which is ticked off; nothing: it runs the incumbent.
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

  /// Not exactly every stride calls: the application may have a period, too.
  void schedule_timed() {
    const auto jitter = std::int32_t(mix(std::uint32_t(calls), id.number) >> 1) % stride;
    next_timed = calls + (stride + 1) / 2 + jitter;
  }

  /// Ends a call that may not have run the incumbent.
  void end_eventful(std::int32_t arm) {
    eventful_call = calls;
    eventful_arm = arm;
    ++calls;
    schedule_event();
  }

  /// Makes the plan in `words` the current one; returns how many words it has.
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
    schedule_event();
    return plan_words::header + num_explore;
  }

  /// How often the plan runs an arm: the share of its calls.
  double share(int arm) const {
    const std::int32_t in_all = period > 0 ? period : length;
    if (next_explore == num_explore || in_all < num_explore) return arm == incumbent ? 1 : 0;
    int explores = 0;
    for (std::size_t i = 0; i < num_explore; ++i)
      if (explored(i).arm == arm) ++explores;
    const int others = arm == incumbent ? in_all - num_explore : 0;
    return double(explores + others) / in_all;
  }

  /// Whether the incumbent has settled: no other arm is likely to be clearly faster, or plans have
  /// kept it, or will, for so many calls, and try little else.
  bool is_settled() const {
    constexpr std::int64_t long_enough = 32;
    return found_best || (tries_little() && activated_at + length - settled_since >= long_enough);
  }

 private:
  bool tries_little() const {
    constexpr int rarely = 4;  // once in so many calls
    int tried = 0;
    for (std::size_t i = 0; i < num_explore; ++i)
      if (const exploration e = explored(i); e.position < length && e.arm != incumbent) ++tried;
    return has_plan && tried * rarely <= length;
  }

  void schedule_event() {
    std::int64_t next = next_timed;
    if (next_explore < num_explore)
      next = std::min(next, list_start + explored(next_explore).position);
    next_event = std::max(next, calls);
  }
};

}  // namespace railpass::select

// SPDX-License-Identifier: BSL-1.0
//
// Decides when a waiting rank yields its core.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <sched.h>

namespace railpass::internal {

/// Ranks that share a core must yield to the ranks they wait for. Where another program computes on
/// the core, a yield costs a turn of that program, and from Linux 6.18 on the rest of the rank's
/// own turn. Ranks then rarely run at the same time: an all_reduce of two ranks takes 10 times as
/// long. So the longer yields last, the longer a rank keeps its core before the next one. Threads
/// may share it.
class yielding {
 public:
  /// `own_core`: no other rank of the job needs the rank's core. If false, each poll in vain
  /// yields.
  explicit yielding(bool own_core) : own_core_(own_core) {}

  /// Call after a poll in vain: yields if that is due. Computes with integers only, because the
  /// program's floating-point environment may have traps.
  void offer_core() {
    if (!own_core_) {
      sched_yield();
      return;
    }
    const std::int64_t now_ns = clock_ns();
    if (!is_due(now_ns)) return;
    sched_yield();
    yielded(now_ns, clock_ns());
  }

  bool is_due(std::int64_t now_ns) const {
    return now_ns >= next_ns_.load(std::memory_order_relaxed);
  }
  /// The rank yielded at one time, and has its core again at the other.
  void yielded(std::int64_t from_ns, std::int64_t to_ns) {
    const std::int64_t before_ns = keeps_ns_.load(std::memory_order_relaxed);
    std::int64_t keeps_ns = before_ns / 2;
    if (to_ns - from_ns > turn_ns) keeps_ns = std::clamp(2 * before_ns, least_ns, most_ns);
    if (keeps_ns < least_ns) keeps_ns = 0;
    keeps_ns_.store(keeps_ns, std::memory_order_relaxed);
    next_ns_.store(to_ns + keeps_ns, std::memory_order_relaxed);
  }

  /// A yield that lasts longer was the turn of a program that computes (Linux: 3 ms if nothing
  /// wakes up). Ranks that wait give the core back sooner.
  static constexpr std::int64_t turn_ns = 1'000'000;
  /// The time between two yields, from the first long yield on. The most is a few turns.
  static constexpr std::int64_t least_ns = 10'000, most_ns = 10'000'000;

 private:
  static std::int64_t clock_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  }

  const bool own_core_;
  std::atomic<std::int64_t> keeps_ns_ = 0, next_ns_ = std::numeric_limits<std::int64_t>::min();
};

}  // namespace railpass::internal

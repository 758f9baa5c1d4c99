// SPDX-License-Identifier: BSL-1.0
//
// Decides when a waiting rank yields its core.
#pragma once

#include "railpass/base/clock.hpp"

#include <algorithm>
#include <atomic>
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

  /// Call after a poll in vain: yields if that is due.
  void offer_core() {
    if (!own_core_) {
      sched_yield();
      return;
    }
    const double now_s = steady_clock_s();
    if (!is_due(now_s)) return;
    sched_yield();
    yielded(now_s, steady_clock_s());
  }

  bool is_due(double now_s) const { return now_s >= next_s_.load(std::memory_order_relaxed); }
  /// The rank yielded at one time, and has its core again at the other.
  void yielded(double from_s, double to_s) {
    double keeps_s = keeps_s_.load(std::memory_order_relaxed);
    keeps_s = to_s - from_s > turn_s ? std::clamp(2 * keeps_s, least_s, most_s) : keeps_s / 2;
    if (keeps_s < least_s) keeps_s = 0;
    keeps_s_.store(keeps_s, std::memory_order_relaxed);
    next_s_.store(to_s + keeps_s, std::memory_order_relaxed);
  }

  /// A yield that lasts longer was the turn of a program that computes (Linux: 3 ms if nothing
  /// wakes up). Ranks that wait give the core back sooner.
  static constexpr double turn_s = 1e-3;
  /// The time between two yields, from the first long yield on. The most is a few turns.
  static constexpr double least_s = 10e-6, most_s = 10e-3;

 private:
  const bool own_core_;
  std::atomic<double> keeps_s_ = 0, next_s_ = 0;
};

}  // namespace railpass::internal

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/base/clock.hpp"

#include <atomic>
#include <cstdint>
#include <span>

namespace railpass::internal {

/// A rank that a call waits for.
struct awaited_peer {
  std::int32_t rank = 0;      ///< physical
  std::int32_t sends = 0;     ///< messages to it that have not ended
  std::int32_t receives = 0;  ///< messages from it that have not ended
};

/// Functions that a wait loop calls during a call.
struct wait_watch {
  clock_function clock = steady_clock_s;
  /// When `report` is called, and again whenever that time has doubled; 0: never.
  double after_s = 0;
  void (*report)(void* user_data, std::span<const awaited_peer>, double waited_s) = nullptr;
  /// Now and then while nothing moves: a code that is not 0 ends the call with it.
  int (*look)(void* user_data) = nullptr;
  void* user_data = nullptr;
  /// Counts what moves; another thread may read the count. Null: not counted.
  std::atomic<std::uint64_t>* progress = nullptr;

  void note_progress() const {
    if (progress)
      progress->store(progress->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

/// Deadlines of one wait: a first time, and again whenever the time has doubled.
class patience {
 public:
  patience(double after_s, double since_s) : after_s_(after_s), since_s_(since_s) {}
  bool has_any() const { return after_s_ > 0; }
  double waited_s(double now_s) const { return now_s - since_s_; }
  bool is_out(double now_s) {
    if (!has_any() || waited_s(now_s) < after_s_) return false;
    while (after_s_ <= waited_s(now_s)) after_s_ *= 2;
    return true;
  }

 private:
  double after_s_, since_s_;
};

}  // namespace railpass::internal

// SPDX-License-Identifier: BSL-1.0
//
// Decides when tuning of a communicator starts. Set-up takes as long as hundreds of the shortest
// calls, so it should not happen for a few of them, nor wait for long if calls are long.
#pragma once

#include "railpass/base/clock.hpp"
#include "railpass/base/float_environment.hpp"

#include <cstdint>

namespace railpass::select {

/// Counts the calls of a communicator before its ranks have agreed to tune it. All ranks count the
/// same, so all ranks know in which calls they must agree. The time of calls is each rank's own.
class beginning {
 public:
  /// The call of the first agreement, whatever was counted: until then, ranks may have different
  /// settings.
  static constexpr std::int64_t first_agreement = 8;

  /// Counts a call; returns whether the ranks must agree in it.
  /// @param bytes size of the call; 0 if not all ranks know the size
  /// @param at_once equal on all ranks: from the first agreement on, agree without further waiting
  bool count(std::int64_t bytes, bool at_once, clock_function clock) {
    if (++calls_ == 2) began_s_ = clock();  // the first call may open connections
    if (calls_ < first_agreement) return false;
    weight_ += 1 + (bytes > 0 ? bytes : unknown_bytes) / light_bytes;
    const bool is_due = calls_ == first_agreement || weight_ >= next_agreement_;
    if (!is_due && !at_once) return false;
    weight_ = 0;
    if (is_due) next_agreement_ *= postponed;
    return true;
  }

  bool has_calls() const { return calls_ > 0; }

  /// In an agreement: the mean time per call on this rank, in seconds; 0 before there are enough
  /// calls.
  double passed_s(double now_s) const {
    const own_float_environment own;
    return calls_ > 2 ? (now_s - began_s_) / double(calls_ - 2) : 0;
  }

  /// Whether tuning pays, by this rank's measurements: calls take long, or have taken long
  /// together.
  bool pays(double now_s) const {
    return passed_s(now_s) >= long_call_s || now_s - began_s_ >= long_sum_s;
  }

 private:
  static constexpr double long_call_s = 20e-6, long_sum_s = 5e-3;
  static constexpr std::int64_t postponed = 8;
  // A long message counts as many calls, because a phase of short messages may have just ended.
  static constexpr std::int64_t light_bytes = 512, unknown_bytes = 4096;

  std::int64_t calls_ = 0, weight_ = 0, next_agreement_ = first_agreement;
  double began_s_ = 0;
};

}  // namespace railpass::select

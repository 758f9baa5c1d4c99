// SPDX-License-Identifier: BSL-1.0
//
// When a communicator begins to be tuned. To begin takes as long as hundreds of the shortest calls,
// so it should neither be done for a few of them nor wait for long ones.
#pragma once

#include "railpass/base/clock.hpp"
#include "railpass/base/float_environment.hpp"

#include <cstdint>

namespace railpass::select {

/// The calls of a communicator before its ranks have agreed to tune it. All ranks count the same,
/// so all know in which calls they are to agree; when these came, each knows for itself.
class beginning {
 public:
  /// The first one, whatever was counted: ranks may have different settings until then.
  static constexpr std::int64_t first_agreement = 8;

  /// Counts a call of so many bytes; 0 if not all ranks know how many. True if it is an agreement.
  /// `at_once`: equal on all ranks, from the first agreement on nothing is to be waited for.
  bool count(std::int64_t bytes, bool at_once, clock_function clock) {
    if (++calls_ == 2) began_s_ = clock();  // the first one may open connections
    if (calls_ < first_agreement) return false;
    weight_ += 1 + (bytes > 0 ? bytes : unknown_bytes) / light_bytes;
    if (calls_ > first_agreement && weight_ < next_agreement_ && !at_once) return false;
    weight_ = 0;
    next_agreement_ *= postponed;
    return true;
  }

  bool has_calls() const { return calls_ > 0; }

  /// In an agreement, how much time has passed per call on this rank, in the mean; 0 before there
  /// are calls to tell.
  double passed_s(double now_s) const {
    const own_float_environment own;
    return calls_ > 2 ? (now_s - began_s_) / double(calls_ - 2) : 0;
  }

  /// Whether to begin pays, as far as this rank knows: calls take long, or have taken long.
  bool pays(double now_s) const {
    return passed_s(now_s) >= long_call_s || now_s - began_s_ >= long_sum_s;
  }

 private:
  static constexpr double long_call_s = 20e-6, long_sum_s = 5e-3;
  static constexpr std::int64_t postponed = 8;
  // A long message counts as many calls: short ones may just have come to their end.
  static constexpr std::int64_t light_bytes = 512, unknown_bytes = 4096;

  std::int64_t calls_ = 0, weight_ = 0, next_agreement_ = first_agreement;
  double began_s_ = 0;
};

}  // namespace railpass::select

// SPDX-License-Identifier: BSL-1.0
//
// Which calls of a context are checked for right results: the first call of each arm, because most
// faults depend on the size alone, as soon as a plan pays for that, and then one call in a stride.
// Integers only, so that all ranks choose alike without a message. How a call is checked is in
// lib/tuner/checked_call.hpp.
//
// With stride s, a fault in a share f of an arm's calls is met after n calls with a probability of
// at least 1 - (1 - f)^(n / s), whether the faults come at random or in a period.
#pragma once

#include "railpass/base/hash.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace railpass::select {

class check_schedule {
 public:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  /// Takes over the plan that is active from this call on. Stride 0: no call is checked.
  /// @param first_checks of so many arms that were not checked, the next call is checked
  void follow(std::int32_t stride, std::int32_t first_checks, std::int64_t call,
              std::int32_t incumbent) {
    stride_ = stride;
    first_checks_ = stride > 0 ? first_checks : 0;
    if (stride == 0)
      next_ = never;
    else if (stride == 1 || is_first(incumbent))
      next_ = call;
    else  // frequent plans must not put the next check off
      next_ = std::min(next_, call + stride + stride / 2);
  }

  /// The next call that is checked, unless another arm's first call comes sooner.
  std::int64_t next() const { return next_; }

  /// Whether this call, which runs this arm, is checked. Asked once for each call that may be.
  /// @param context any number of the context
  bool take(std::int64_t call, std::int32_t arm, std::uint32_t context) {
    const bool first = is_first(arm);
    if (!first && call < next_) return false;
    if (first) --first_checks_;
    if (std::size_t(arm) < most_arms) checked_[word_of(arm)] |= bit_of(arm);
    // With jitter, because the application may be periodic, too.
    if (call >= next_)
      next_ =
          call + (stride_ + 1) / 2 + std::int32_t(mix(std::uint32_t(call), context) >> 1) % stride_;
    return true;
  }

 private:
  static constexpr std::size_t most_arms = 512;  // further arms have no check of the first call

  bool is_first(std::int32_t arm) const { return first_checks_ > 0 && !was_checked(arm); }
  static std::size_t word_of(std::int32_t arm) { return std::size_t(arm) / 64; }
  static std::uint64_t bit_of(std::int32_t arm) { return std::uint64_t{1} << arm % 64; }
  bool was_checked(std::int32_t arm) const {
    return std::size_t(arm) >= most_arms || (checked_[word_of(arm)] & bit_of(arm)) != 0;
  }

  std::int64_t next_ = never;
  std::int32_t stride_ = 0, first_checks_ = 0;
  std::array<std::uint64_t, most_arms / 64> checked_{};
};

}  // namespace railpass::select

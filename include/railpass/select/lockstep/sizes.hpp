// SPDX-License-Identifier: BSL-1.0
//
// Sizes of calls as merges report them, for collectives whose lengths only pairs of ranks know.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace railpass::select {

/// The sizes of all reported calls, in bytes.
struct size_record {
  double mean = 0, smallest = 0, largest = 0;
};

class seen_sizes {
 public:
  void add(double bytes) {
    sum_ += bytes;
    all_.smallest = count_ == 0 ? bytes : std::min(all_.smallest, bytes);
    all_.largest = std::max(all_.largest, bytes);
    latest_[std::size_t(count_++) % latest_.size()] = float(bytes);
    all_.mean = sum_ / double(count_);
  }

  const size_record& record() const { return all_; }

  /// Whether the latest sizes differ by this factor, empty calls counted as calls of one byte.
  bool vary_by(double factor) const {
    const auto known = std::min(std::size_t(count_), latest_.size());
    if (known < enough) return false;
    const auto [least, most] =
        std::minmax_element(latest_.begin(), latest_.begin() + std::ptrdiff_t(known));
    return *most >= factor * std::max(*least, 1.0F);
  }

 private:
  static constexpr std::size_t enough = 8;  // calls
  std::array<float, 32> latest_{};          // the oldest is replaced
  std::int64_t count_ = 0;
  double sum_ = 0;
  size_record all_{};
};

/// Recent mean times of the calls that begin with a reduction of their size: of the whole call, and
/// of the reduction in it.
class asking_calls {
 public:
  void add(double call_s, double asked_s) {
    const double weight = std::max(1 / ++calls_, 1 - kept);
    call_s_ += weight * (call_s - call_s_);
    asked_s_ += weight * (asked_s - asked_s_);
  }
  bool are_few() const { return calls_ < few; }
  double call_s() const { return call_s_; }
  double asked_s() const { return asked_s_; }

 private:
  static constexpr double few = 8, kept = 0.98;  // calls; of what was known, per call
  double calls_ = 0, call_s_ = 0, asked_s_ = 0;
};

}  // namespace railpass::select

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/base/statistics.hpp"

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace railpass::select {

/// A selection of a stream of times, evenly over its whole life, for quantiles: first every time,
/// then every second, and so on. Allocates memory with the first time; without memory it keeps
/// nothing.
class thinned_times {
 public:
  void add(double seconds) noexcept {
    if (seen_++ % stride_ != 0) return;
    if (kept_s_.size() == most) {
      for (std::size_t i = 0; i < most / 2; ++i) kept_s_[i] = kept_s_[2 * i];
      kept_s_.resize(most / 2);
      stride_ *= 2;
    }
    try {
      kept_s_.reserve(most);
      kept_s_.push_back(float(seconds));
    } catch (const std::bad_alloc&) {  // maybe the next one fits
    }
  }
  bool empty() const { return kept_s_.empty(); }
  /// See railpass::quantile.
  /// @throws error if no time was kept
  double quantile(double q) const {
    return railpass::quantile(std::vector<double>(kept_s_.begin(), kept_s_.end()), q);
  }

 private:
  static constexpr std::size_t most =
      32;  // even: after so many the next one is one of every second
  std::vector<float> kept_s_;
  std::int64_t seen_ = 0, stride_ = 1;
};

}  // namespace railpass::select

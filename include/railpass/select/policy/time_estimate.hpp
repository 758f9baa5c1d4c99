// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cmath>

namespace railpass::select {

/// An estimated time: the mean, and the spread (standard deviation of the logarithm).
struct time_estimate {
  double mean_s = 0;
  double spread = 0;

  /// The mean of the natural logarithm of the seconds, if that is normally distributed.
  double log_seconds() const { return std::log(mean_s) - spread * spread / 2; }
  friend bool operator==(const time_estimate&, const time_estimate&) = default;
};

}  // namespace railpass::select

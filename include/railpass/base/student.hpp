// SPDX-License-Identifier: BSL-1.0
//
// Student's distribution.
#pragma once

#include <cmath>
#include <numbers>

namespace railpass {

/// The probability that a value of Student's distribution is at least as far from 0 as `t`, by
/// Wallace's approximation (doi:10.1214/aoms/1177706082).
inline double two_sided(double t, double freedom) {
  const double z =
      std::sqrt(freedom * std::log1p(t * t / freedom)) * (8 * freedom + 1) / (8 * freedom + 3);
  return std::erfc(z / std::numbers::sqrt2);
}

/// The distance from 0 that a value of Student's distribution exceeds with probability `chance`.
inline double students_t(double freedom, double chance) {
  double low = 0, high = 1000;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (two_sided(middle, freedom) > chance ? low : high) = middle;
  }
  return high;
}

}  // namespace railpass

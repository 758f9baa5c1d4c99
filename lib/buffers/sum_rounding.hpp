// SPDX-License-Identifier: BSL-1.0
//
// Whether two sums of the same floating-point numbers differ by rounding alone.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace railpass::internal {

/// `magnitudes`: the sums of the terms' absolute values. In whatever order `terms` numbers are
/// added, each takes part in fewer than so many additions, so the sum errs by less than terms * eps
/// / 2 of the magnitude, however little of it is left in the sum. Twice that for two sums, and
/// twice again as the magnitude is rounded, too. Where a magnitude overflows, so may parts of a
/// sum, in some orders: anything goes.
template <class T>
bool differ_by_rounding(std::span<const T> a, std::span<const T> b, std::span<const T> magnitudes,
                        int terms) {
  const T relative = T(2) * T(terms) * std::numeric_limits<T>::epsilon();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) ||
                      std::isinf(magnitudes[i]) ||
                      std::abs(a[i] - b[i]) <= relative * magnitudes[i];
    if (!same) return false;
  }
  return true;
}

}  // namespace railpass::internal

// SPDX-License-Identifier: BSL-1.0
//
// Whether two sums of the same floating-point numbers differ by rounding alone.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace railpass::internal {

/// `magnitudes`: the sums of the terms' absolute values. In any order of addition, each of `terms`
/// numbers takes part in fewer than `terms` additions. So a sum errs by less than terms * eps / 2
/// of its magnitude, even after cancellation. Twice that for two sums, and twice again because the
/// magnitude is rounded, too. If a magnitude overflows, parts of a sum may overflow in some orders:
/// any result is accepted.
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

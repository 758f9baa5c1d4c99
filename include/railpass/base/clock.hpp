// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <bit>
#include <chrono>
#include <cstdint>

namespace railpass {

/// Seconds of so many nanoseconds, in multiples of 2^-30 s that a double holds (coarser ones after
/// 97 days): sums and differences of such times are exact, and so raise nothing in programs that
/// trap even what is inexact.
constexpr double exact_seconds(std::int64_t nanoseconds) {
  constexpr std::int64_t second = 1'000'000'000, ticks_of_ns = 1'152'921'505;  // times 2^-30
  std::int64_t ticks =
      ((nanoseconds / second) << 30) + ((nanoseconds % second) * ticks_of_ns >> 30);
  constexpr int most_bits = 53;
  const int excess = int(std::bit_width(std::uint64_t(ticks))) - most_bits;
  if (excess > 0) ticks &= -(std::int64_t{1} << excess);
  return double(ticks) * 0x1p-30;
}

/// Where times come from: seconds since some fixed moment, monotone. Injected, so that simulated
/// machines and tests bring their own.
using clock_function = double (*)();

inline double steady_clock_s() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return exact_seconds(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

}  // namespace railpass

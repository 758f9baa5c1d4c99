// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace railpass {

/// One length for each of D dimensions, of any integers: {nx, ny}.
template <int D>
class extents {
  static_assert(D >= 1);

 public:
  constexpr extents() = default;
  template <std::integral... N>
  requires(sizeof...(N) == D) constexpr extents(N... n) : values_{std::int64_t(n)...} {}
  template <std::integral N>
  constexpr extents(const std::array<N, std::size_t(D)>& n) {
    for (std::size_t k = 0; k < std::size_t(D); ++k) values_[k] = std::int64_t(n[k]);
  }

  constexpr std::int64_t& operator[](int k) { return values_[std::size_t(k)]; }
  constexpr std::int64_t operator[](int k) const { return values_[std::size_t(k)]; }
  constexpr const std::array<std::int64_t, std::size_t(D)>& values() const { return values_; }
  friend constexpr bool operator==(const extents&, const extents&) = default;

 private:
  std::array<std::int64_t, std::size_t(D)> values_{};
};

}  // namespace railpass

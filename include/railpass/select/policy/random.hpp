// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

namespace railpass::select {

/// A small generator with the same numbers on every platform (splitmix64: Steele, Lea, Flood: Fast
/// splittable pseudorandom number generators, OOPSLA 2014, doi:10.1145/2660193.2660195).
class random_stream {
 public:
  explicit random_stream(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// In (0, 1).
  double uniform() { return (double(next() >> 11) + 0.5) * 0x1p-53; }
  /// In 0 .. n - 1.
  int below(int n) { return int(next() % std::uint64_t(n)); }
  double normal() {
    return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform());
  }
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (int i = int(values.size()) - 1; i > 0; --i)
      std::swap(values[std::size_t(i)], values[std::size_t(below(i + 1))]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace railpass::select

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

namespace life {

/// One value of a well mixed function: every rank can compute what every other one has.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Random numbers that are the same with every compiler and library.
class stream {
 public:
  explicit stream(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() { return state_ = mix(state_); }
  int below(int bound) { return static_cast<int>(next() % static_cast<std::uint64_t>(bound)); }
  bool one_in(int times) { return below(times) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace life

// SPDX-License-Identifier: BSL-1.0
//
// Hashes, equal on all ranks, in all runs and on all machines.
//
// FNV-1a: Fowler, Noll, Vo, RFC 9923. The multiplier of scattered() is the golden ratio's: Knuth,
// The Art of Computer Programming 3, section 6.4.
#pragma once

#include <cstdint>
#include <string_view>

namespace railpass {

/// FNV-1a of these bytes. @param start the hash of the bytes before
constexpr std::uint64_t fnv1a(std::string_view bytes, std::uint64_t start = 14695981039346656037u) {
  for (const char c : bytes) start = (start ^ std::uint8_t(c)) * 1099511628211u;
  return start;
}

/// FNV-1a of a list of texts.
class text_hash {
 public:
  text_hash& add(std::string_view text) {
    hash_ = fnv1a("\xff", fnv1a(text, hash_));
    return *this;
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = fnv1a("");
};

/// Spreads similar values over all results. Only the upper bits are good.
constexpr std::uint64_t scattered(std::uint64_t value) { return value * 0x9e3779b97f4a7c15u; }

/// The hash of a list of numbers: of `value` and those before, whose hash is given. Also makes
/// pseudo-random choices.
constexpr std::uint32_t mix(std::uint32_t hash, std::uint64_t value) {
  std::uint64_t h = scattered(hash ^ value);
  h ^= h >> 29;
  h *= 0xbf58476d1ce4e5b9u;
  return static_cast<std::uint32_t>(h >> 32);
}

}  // namespace railpass

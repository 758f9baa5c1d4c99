// SPDX-License-Identifier: BSL-1.0
//
// Algorithms that calls must not use, although they are eligible: because a result was wrong, or
// because a site says so. All ranks of a communicator have the same table before one of them acts
// by it (lib/group/common_exclusions.hpp).
#pragma once

#include "collectives/registry.hpp"
#include "railpass/base/hash.hpp"
#include "railpass/select/lockstep/context.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

namespace railpass::select {

/// The calls for which an algorithm, with all its parameters, must not be used.
struct exclusion {
  const algorithm* what = nullptr;             ///< of a collective; may be native
  std::optional<operation_class> operation{};  ///< empty: any
  /// Sizes of messages, of which all in the same size class are excluded. Irrelevant for
  /// collectives without a size that all ranks know.
  std::int64_t from_bytes = 0, to_bytes = std::numeric_limits<std::int64_t>::max();
  int from_ranks = 1, to_ranks = std::numeric_limits<int>::max();
  int from_hosts = 1, to_hosts = std::numeric_limits<int>::max();
};

/// The properties of a call that exclusions may name. Equal on all ranks.
struct excludable_call {
  operation_class operation = operation_class::none;
  std::int64_t bytes = 0;
  int num_ranks = 1, num_hosts = 1;
};

/// What messages between ranks carry: exclusions are equal if and only if their words are, on all
/// ranks of one build.
using exclusion_words = std::array<std::uint64_t, 3>;

inline exclusion_words words_of(const exclusion& e) {
  const auto number =
      std::uint64_t(std::ranges::find(all_algorithms, e.what) - all_algorithms.begin());
  const auto pair = [](int from, int to) {
    return std::uint64_t(std::uint32_t(from)) << 32 | std::uint32_t(to);
  };
  return {number << 24 | std::uint64_t(e.operation ? 1 + int(*e.operation) : 0) << 16 |
              std::uint64_t(size_class_of(e.from_bytes)) << 8 | size_class_of(e.to_bytes),
          pair(e.from_ranks, e.to_ranks), pair(e.from_hosts, e.to_hosts)};
}

/// The inverse. The sizes of the result are whole size classes.
inline exclusion exclusion_of(const exclusion_words& w) {
  const auto operation = std::uint8_t(w[0] >> 16), from_class = std::uint8_t(w[0] >> 8),
             to_class = std::uint8_t(w[0]);
  exclusion e{.what = all_algorithms[w[0] >> 24],
              .from_bytes = smallest_bytes(from_class),
              .from_ranks = int(w[1] >> 32),
              .to_ranks = int(std::uint32_t(w[1])),
              .from_hosts = int(w[2] >> 32),
              .to_hosts = int(std::uint32_t(w[2]))};
  if (operation > 0) e.operation = operation_class(operation - 1);
  if (to_class < 62) e.to_bytes = smallest_bytes(std::uint8_t(to_class + 1)) - 1;
  return e;
}

constexpr bool excludes(const exclusion& e, const algorithm& a, const excludable_call& c) {
  const block_lengths lengths = describe(a.op).lengths;
  const bool has_size =
      lengths != block_lengths::of_pair && describe(a.op).what != promise::all_arrive;
  const std::uint8_t size_class = size_class_of(c.bytes);
  return e.what == &a && (!e.operation || *e.operation == c.operation) &&
         (!has_size ||
          (size_class >= size_class_of(e.from_bytes) && size_class <= size_class_of(e.to_bytes))) &&
         c.num_ranks >= e.from_ranks && c.num_ranks <= e.to_ranks && c.num_hosts >= e.from_hosts &&
         c.num_hosts <= e.to_hosts;
}

/// A table of exclusions. Allocates nothing, so that a rank cannot fail alone.
class exclusions {
 public:
  static constexpr std::size_t most = 64;

  /// Adds an exclusion unless the table has it. False: the table is full.
  bool add(const exclusion& e) {
    const exclusion_words words = words_of(e);
    const auto place = std::lower_bound(begin(), end(), words);
    if (place != end() && *place == words) return true;
    if (size_ == most) return false;
    std::copy_backward(place, end(), end() + 1);
    *place = words;
    ++size_;
    return true;
  }

  bool empty() const { return size_ == 0; }
  /// Whether the other table has an exclusion that this table could also hold.
  bool lacks_some(const exclusions& other) const {
    return size_ < most && !std::ranges::includes(all(), other.all());
  }
  /// In an order that is equal on all ranks with equal tables.
  std::span<const exclusion_words> all() const { return {words_.data(), size_}; }

  /// Whether a call must not use the algorithm.
  bool has(const algorithm& a, const excludable_call& c) const {
    return std::ranges::any_of(
        all(), [&](const exclusion_words& w) { return excludes(exclusion_of(w), a, c); });
  }
  /// Whether any call must not use the MPI library's own collective.
  bool has_native() const {
    return std::ranges::any_of(
        all(), [](const exclusion_words& w) { return exclusion_of(w).what->is_native(); });
  }

  /// Equal for equal tables, and hardly ever for others.
  std::uint64_t mark() const {
    return fnv1a({reinterpret_cast<const char*>(words_.data()), size_ * sizeof(exclusion_words)});
  }

  friend bool operator==(const exclusions& a, const exclusions& b) {
    return std::ranges::equal(a.all(), b.all());
  }

 private:
  exclusion_words* begin() { return words_.data(); }
  exclusion_words* end() { return words_.data() + size_; }

  std::size_t size_ = 0;
  std::array<exclusion_words, most> words_{};
};

/// ", 64KiB to 128KiB, 2 to 8 ranks"; empty: all calls.
inline std::string conditions_text(const exclusion& e) {
  std::string text;
  if (e.operation)
    text.append(", operations ").append(operation_class_names[std::size_t(*e.operation)]);
  const auto range = [&](auto from, auto to, auto least, const char* unit, const auto& show) {
    const bool ends = to != std::numeric_limits<decltype(to)>::max();
    if (from <= least && !ends) return;
    text.append(", ").append(show(from));
    if (!ends) text.append(" or more");
    if (ends && to != from) text.append(" to ").append(show(to));
    text.append(unit);
  };
  const auto number = [](int n) { return std::to_string(n); };
  range(e.from_bytes, e.to_bytes, std::int64_t{0}, "", format_bytes);
  range(e.from_ranks, e.to_ranks, 1, " ranks", number);
  range(e.from_hosts, e.to_hosts, 1, " hosts", number);
  return text;
}

/// "all_reduce ring, 64KiB to 128KiB, 2 to 8 ranks".
inline std::string text_of(const exclusion& e) {
  return std::string(name_of(e.what->op)).append(" ").append(e.what->name) + conditions_text(e);
}

}  // namespace railpass::select

// SPDX-License-Identifier: BSL-1.0
//
// Laws that the results of collectives fulfil, as numbers whose sums over all ranks, modulo powers
// of two, are zero if the results are right. One small reduction thus checks a call without a
// second execution. No MPI here: lib/tuner/checked_call.hpp applies the laws to calls.
//
// - Moved data: every block that a rank passes to a rank counts positive where it is sent, and
//   negative where it is received. A block's number depends on source, destination and all bytes at
//   their positions, so data that are altered, missing, shifted, swapped or from a wrong rank show.
// - Integer sums modulo 2^w: each rank weighs the elements of its input and of its result with the
//   same pseudo-random numbers. Sums of weighted inputs and of weighted results are equal, because
//   weighing is linear (Freivalds' check, doi:10.1007/3-540-09526-8_5).
#pragma once

#include "railpass/base/hash.hpp"
#include "railpass/schedule/promise.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace railpass::internal {

/// A one-to-one map of 64-bit numbers that spreads similar numbers over all results (the finalizer
/// of SplitMix64, doi:10.1145/2714064.2660195).
constexpr std::uint64_t spread(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A hash of bytes at their positions. Two blocks that differ in up to 8 bytes of one aligned word
/// never have the same hash; other blocks have with a probability of about 2^-64.
inline std::uint64_t positioned_hash(std::span<const std::byte> bytes) {
  const auto of_word = [](std::uint64_t word, std::uint64_t position) {
    std::uint64_t x = (word ^ scattered(position + 1)) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 32;
    return x * 0x94d049bb133111ebu;
  };
  std::uint64_t hash = spread(bytes.size()), word = 0;
  std::size_t i = 0;
  for (; i + sizeof word <= bytes.size(); i += sizeof word) {
    std::memcpy(&word, bytes.data() + i, sizeof word);
    hash += of_word(word, i / sizeof word);
  }
  if (i == bytes.size()) return hash;
  word = 0;
  std::memcpy(&word, bytes.data() + i, bytes.size() - i);
  return hash + of_word(word, i / sizeof word);
}

/// The number of a block with this hash that one rank passes to another or to itself. `hash` may be
/// any number that both ranks know of the block, such as its length.
constexpr std::uint64_t passed(std::uint64_t hash, int source, int destination) {
  return spread(hash ^ spread(std::uint64_t(std::uint32_t(source)) << 32 |
                              std::uint64_t(std::uint32_t(destination) + 1u)));
}

/// Weighted sums of integers, each with other weights, modulo 2^64. A change of one element always
/// changes the first sum, whose weights are odd. Other changes escape each sum modulo 2^w with a
/// probability of 2^(k - w), where 2^k is the largest power of two that divides all changes.
struct weighted_sums {
  static constexpr std::size_t number = 4;
  std::array<std::uint64_t, number> of{};

  weighted_sums& operator+=(const weighted_sums& other) {
    for (std::size_t i = 0; i < number; ++i) of[i] += other.of[i];
    return *this;
  }
  weighted_sums& operator-=(const weighted_sums& other) {
    for (std::size_t i = 0; i < number; ++i) of[i] -= other.of[i];
    return *this;
  }
  friend weighted_sums operator*(weighted_sums a, const weighted_sums& b) {
    for (std::size_t i = 0; i < number; ++i) a.of[i] *= b.of[i];
    return a;
  }
};

/// The weights of the n-th element or rank.
constexpr weighted_sums weights_of(std::uint64_t n, std::uint64_t kind) {
  const std::uint64_t x = spread(scattered(n + 1) ^ kind);
  return {{x | 1, std::rotl(x, 16), std::rotl(x, 32), std::rotl(x, 48)}};
}
constexpr weighted_sums weights_of_element(std::uint64_t n) { return weights_of(n, 0x656c); }
constexpr weighted_sums weights_of_rank(int rank) {
  return weights_of(std::uint64_t(rank), 0x72616e6b);
}

/// The weighted sums of integers of `width` bytes (1, 2, 4 or 8), of which the first is the
/// message's element number `first`.
inline weighted_sums weigh(std::span<const std::byte> elements, std::size_t width,
                           std::uint64_t first = 0) {
  weighted_sums sums;
  const auto add = [&]<class T>(T) {
    for (std::size_t i = 0; i * sizeof(T) < elements.size(); ++i) {
      T element;
      std::memcpy(&element, elements.data() + i * sizeof(T), sizeof(T));
      const weighted_sums w = weights_of_element(first + i);
      for (std::size_t k = 0; k < weighted_sums::number; ++k) sums.of[k] += element * w.of[k];
    }
  };
  if (width == 1) add(std::uint8_t{});
  if (width == 2) add(std::uint16_t{});
  if (width == 4) add(std::uint32_t{});
  if (width == 8) add(std::uint64_t{});
  return sums;
}

/// The weight of each rank's input in a prefix sum, whose results have the ranks' weights: the sum
/// of the weights of all ranks from `rank` on, or after `rank` in an exclusive prefix sum.
inline weighted_sums weight_in_prefixes(int rank, int num_ranks, bool exclusive) {
  weighted_sums all;
  for (int q = exclusive ? rank + 1 : rank; q < num_ranks; ++q) all += weights_of_rank(q);
  return all;
}

/// The terms that one rank adds to the reduction of a check. After that each member is the sum over
/// all ranks, and all ranks know the same.
struct law_terms {
  std::uint64_t moved = 0;    ///< zero: all data arrived
  std::uint64_t lengths = 0;  ///< zero: senders and receivers mean blocks of the same lengths
  weighted_sums sums{};       ///< zero modulo 2^w: all sums are right

  /// Whether the result is right, if its integers have `width` bytes.
  bool hold(std::size_t width) const {
    const std::uint64_t counted =
        width >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * width) - 1;
    std::uint64_t wrong = moved;
    for (const std::uint64_t sum : sums.of) wrong |= sum & counted;
    return wrong == 0;
  }
};

/// One rank's part of a call whose result fulfils a law: data are moved, or integers are added.
struct lawful_call {
  promise what = promise::root_to_all;
  int rank = 0, num_ranks = 1, root = 0;  ///< physical
  std::size_t width = 0;                  ///< bytes of an integer; 0: data are moved
  /// The number of the message's element with which a block of the sum begins.
  std::uint64_t first_element = 0;
  bool own_block_stays = false;  ///< a root in place passes no block to itself
};

/// Packed blocks of one rank: one block, or one block for each physical rank.
using packed_blocks = std::span<const std::span<const std::byte>>;

namespace laws_detail {

inline void pass(law_terms& terms, bool sends, std::span<const std::byte> block, std::uint64_t hash,
                 int source, int destination) {
  const std::uint64_t moved = passed(hash, source, destination),
                      length = passed(block.size(), source, destination);
  terms.moved += sends ? moved : -moved;
  terms.lengths += sends ? length : -length;
}

inline void pass_to_all(law_terms& terms, const lawful_call& c, std::span<const std::byte> block) {
  const std::uint64_t hash = positioned_hash(block);
  for (int i = 0; i < c.num_ranks; ++i) pass(terms, true, block, hash, c.rank, i);
}

}  // namespace laws_detail

/// Adds the terms of a result that is equal on all ranks.
inline void add_common_result(law_terms& terms, const lawful_call& c,
                              std::span<const std::byte> result) {
  using namespace laws_detail;
  if (c.rank == 0) pass_to_all(terms, c, result);
  pass(terms, false, result, positioned_hash(result), 0, c.rank);
}

/// Adds the terms of what this rank puts into the call, before the call overwrites it. Without
/// blocks the rank puts in nothing.
inline void add_input(law_terms& terms, const lawful_call& c, packed_blocks sent) {
  using namespace laws_detail;
  if (sent.empty()) return;
  if (c.width > 0) {
    const bool prefix = c.what == promise::prefix || c.what == promise::prefix_before;
    const weighted_sums own = weigh(sent[0], c.width);
    terms.sums +=
        prefix ? own * weight_in_prefixes(c.rank, c.num_ranks, c.what == promise::prefix_before)
               : own;
  } else if (c.what == promise::root_to_all || c.what == promise::blocks_to_all) {
    pass_to_all(terms, c, sent[0]);
  } else if (c.what == promise::blocks_to_root) {
    pass(terms, true, sent[0], positioned_hash(sent[0]), c.rank, c.root);
  } else {
    for (int i = 0; i < c.num_ranks; ++i)
      if (i != c.rank || !c.own_block_stays)
        pass(terms, true, sent[std::size_t(i)], positioned_hash(sent[std::size_t(i)]), c.rank, i);
  }
}

/// Subtracts the terms of what this rank gets from the call. Without blocks the rank gets nothing.
inline void subtract_result(law_terms& terms, const lawful_call& c, packed_blocks received) {
  using namespace laws_detail;
  if (received.empty()) return;
  const auto pass_from = [&](std::span<const std::byte> block, int source) {
    pass(terms, false, block, positioned_hash(block), source, c.rank);
  };
  if (c.what == promise::reduce_to_all) {  // the first rank's result is right, and all have it
    if (c.rank == 0) terms.sums -= weigh(received[0], c.width);
    add_common_result(terms, c, received[0]);
  } else if (c.width > 0) {
    const weighted_sums own = weigh(received[0], c.width, c.first_element);
    const bool prefix = c.what == promise::prefix || c.what == promise::prefix_before;
    terms.sums -= prefix ? own * weights_of_rank(c.rank) : own;
  } else if (c.what == promise::root_to_all || c.what == promise::root_to_blocks) {
    pass_from(received[0], c.root);
  } else {
    for (int i = 0; i < c.num_ranks; ++i) pass_from(received[std::size_t(i)], i);
  }
}

}  // namespace railpass::internal

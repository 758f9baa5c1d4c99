// SPDX-License-Identifier: BSL-1.0
//
// A context: the calls that share one decision. Its key contains only values that are equal on all
// ranks (the number of ranks and the node layout are fixed per communicator).
#pragma once

#include "collectives/algorithm.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

namespace railpass::select {

/// The class of a reduction's operation; `none` for collectives that only move data.
enum class operation_class : std::uint8_t { none, builtin, user_commutative, user_ordered };
inline constexpr std::array operation_class_names{
    std::string_view{"none"}, std::string_view{"builtin"}, std::string_view{"user_commutative"},
    std::string_view{"user_ordered"}};

/// Size class c holds the sizes from 2^c to 2^(c+1) - 1 bytes; class 0 also holds 0.
constexpr std::uint8_t size_class_of(std::int64_t bytes) {
  return bytes <= 1
             ? std::uint8_t{0}
             : static_cast<std::uint8_t>(std::bit_width(static_cast<std::uint64_t>(bytes)) - 1);
}
constexpr std::int64_t smallest_bytes(std::uint8_t size_class) {
  return size_class == 0 ? 0 : std::int64_t{1} << size_class;
}

/// How ranks wait for each other in the calls of a context: no rank can leave before all have
/// arrived; the same except for empty blocks; or some ranks wait for some, for example with a root.
enum class waiting : std::uint8_t { for_all, usually_for_all, for_some };

constexpr waiting waiting_in(collective op) {
  switch (describe(op).what) {
    case promise::reduce_to_all:
    case promise::all_arrive:
    case promise::reduce_to_blocks:
    case promise::blocks_to_all:
    case promise::blocks_to_blocks:
      return describe(op).lengths == block_lengths::equal ? waiting::for_all
                                                          : waiting::usually_for_all;
    default:
      return waiting::for_some;
  }
}

/// Whether no rank can leave before all have arrived.
constexpr bool waits_for_all(collective op) { return waiting_in(op) == waiting::for_all; }

/// The identity of a context for the lockstep: a unique number, and how ranks wait. `of_all_sizes`
/// is the number of the context of all sizes if its calls have asked for their size; otherwise 0.
struct context_id {
  std::uint32_t number = 0;
  waiting waits = waiting::for_some;
  std::uint32_t of_all_sizes = 0;
  friend constexpr bool operator==(const context_id&, const context_id&) = default;
};

/// A collective's context.
struct context_key {
  /// The size class of calls whose size no single rank knows, unless the calls ask for it.
  static constexpr std::uint8_t any_size = 255;
  /// The size class of calls that have asked and are shorter than the setting min_bytes.
  static constexpr std::uint8_t below_least = 254;

  collective op = collective::broadcast;
  std::uint8_t size_class = 0;
  operation_class operation = operation_class::none;
  std::uint8_t policy = 0;  ///< 0: the communicator's; else 1 + index of the call's own policy

  constexpr std::uint32_t packed() const {
    return std::uint32_t(op) << 24 | std::uint32_t(size_class) << 16 |
           std::uint32_t(operation) << 8 | policy;
  }
  static constexpr context_key unpacked(std::uint32_t number) {
    return {.op = collective(number >> 24),
            .size_class = std::uint8_t(number >> 16),
            .operation = operation_class(std::uint8_t(number >> 8)),
            .policy = std::uint8_t(number)};
  }
  constexpr bool is_of_any_size() const { return size_class == any_size; }
  constexpr context_key of_all_sizes() const { return {op, any_size, operation, policy}; }
  constexpr operator context_id() const {
    const bool asked = describe(op).lengths == block_lengths::of_pair && !is_of_any_size();
    return {packed(), waiting_in(op), asked ? of_all_sizes().packed() : 0};
  }
  friend constexpr bool operator==(const context_key&, const context_key&) = default;
};

}  // namespace railpass::select

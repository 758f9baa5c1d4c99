// SPDX-License-Identifier: BSL-1.0
//
// A mark of a call, equal on all ranks that make the same call. Ranks compare the mark of received
// data with their own before they use the data.
#pragma once

#include "railpass/base/error.hpp"

#include <cstdint>
#include <string>

namespace railpass::internal {

/// In 8 bytes: the bytes of the message as MPI counts them (0 where only pairs of ranks know any),
/// the root and the arm. Each modulo what there is room for.
class call_mark {
 public:
  constexpr call_mark() = default;
  constexpr call_mark(std::int64_t bytes, std::int32_t root, std::uint64_t arm)
      : bits_(std::uint64_t(bytes) << bytes_shift | (std::uint64_t(root) & root_mask) << arm_bits |
              (arm & arm_mask)) {}
  static constexpr call_mark of_bits(std::uint64_t bits) {
    call_mark m;
    m.bits_ = bits;
    return m;
  }
  constexpr std::uint64_t bits() const { return bits_; }

  /// Describes how two different marks differ, `theirs` first.
  static std::string difference(call_mark theirs, call_mark ours) {
    if (theirs.bytes() != ours.bytes())
      return "has " + std::to_string(theirs.bytes()) + " bytes where this rank has " +
             std::to_string(ours.bytes());
    if (theirs.root() != ours.root())
      return "has root " + std::to_string(theirs.root()) + " where this rank has root " +
             std::to_string(ours.root());
    return "makes another call, or uses another algorithm";
  }

  friend constexpr bool operator==(call_mark, call_mark) = default;

 private:
  static constexpr unsigned arm_bits = 12, root_bits = 20, bytes_shift = arm_bits + root_bits;
  static constexpr std::uint64_t arm_mask = (1u << arm_bits) - 1, root_mask = (1u << root_bits) - 1;

  constexpr std::uint64_t bytes() const { return bits_ >> bytes_shift; }
  constexpr std::uint64_t root() const { return bits_ >> arm_bits & root_mask; }

  std::uint64_t bits_ = 0;
};

/// The ranks do not make the same call: their lengths, roots or collectives differ.
struct unlike_calls : error {
  using error::error;
};

}  // namespace railpass::internal

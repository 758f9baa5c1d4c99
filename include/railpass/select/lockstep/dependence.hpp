// SPDX-License-Identifier: BSL-1.0
//
// Which ranks wait for which others in a call, and in which next call that shows what it cost.
#pragma once

#include "collectives/algorithm.hpp"

#include <cstdint>

namespace railpass::select {

/// Whose leaving depends on whose coming. Unknown where blocks may be empty.
enum class dependence : std::uint8_t { unknown, all_on_all, all_on_root, root_on_all, on_lower };

constexpr dependence dependence_in(collective op) {
  if (describe(op).lengths != block_lengths::equal) return dependence::unknown;
  switch (describe(op).what) {
    case promise::root_to_all:
    case promise::root_to_blocks:
      return dependence::all_on_root;
    case promise::reduce_to_root:
    case promise::blocks_to_root:
      return dependence::root_on_all;
    case promise::prefix:
    case promise::prefix_before:
      return dependence::on_lower;
    default:
      return dependence::all_on_all;
  }
}

constexpr bool has_root(dependence d) {
  return d == dependence::all_on_root || d == dependence::root_on_all;
}

/// Whether the rank that comes last to `next` is the one that holds up the program, whatever it did
/// in the call before. Not if only a root is waited for there; ranks that send to a root in a loop
/// are waited for in the long run.
constexpr bool last_counts(dependence before, dependence next) {
  return next == dependence::all_on_all ||
         (before == dependence::root_on_all && next == dependence::root_on_all);
}

/// What a rank is to the others in a call, and they to it.
struct rank_role {
  dependence of = dependence::unknown;
  bool is_root = false;

  /// Others cannot leave before this rank has come.
  constexpr bool is_awaited() const { return of != dependence::all_on_root || is_root; }
  /// This rank cannot leave before those have come: all of them, or those of lower rank.
  constexpr bool waits() const {
    return of == dependence::all_on_all || of == dependence::on_lower ||
           is_root == (of == dependence::root_on_all);
  }
};

}  // namespace railpass::select

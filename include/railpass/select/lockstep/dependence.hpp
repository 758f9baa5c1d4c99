// SPDX-License-Identifier: BSL-1.0
//
// Which ranks wait for which other ranks in a call, and in which next call the cost of a call
// shows.
#pragma once

#include "collectives/algorithm.hpp"

#include <cstdint>

namespace railpass::select {

/// Which departures depend on which arrivals. Unknown if blocks may be empty.
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

/// Whether the last rank to arrive at `next` delays the program, whatever it did in the call
/// before. If only the root is awaited there, the last rank does not delay it. Ranks that send to a
/// root in a loop are awaited in the long run.
constexpr bool last_counts(dependence before, dependence next) {
  return next == dependence::all_on_all ||
         (before == dependence::root_on_all && next == dependence::root_on_all);
}

/// The role of a rank in a call.
struct rank_role {
  dependence of = dependence::unknown;
  bool is_root = false;

  /// Other ranks cannot leave before this rank has arrived.
  constexpr bool is_awaited() const { return of != dependence::all_on_root || is_root; }
  /// This rank cannot leave before other ranks have arrived: all of them, or those of lower rank.
  constexpr bool waits() const {
    return of == dependence::all_on_all || of == dependence::on_lower ||
           is_root == (of == dependence::root_on_all);
  }
};

}  // namespace railpass::select

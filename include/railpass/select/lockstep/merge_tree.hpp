// SPDX-License-Identifier: BSL-1.0
//
// Which ranks send reports and replies to each other in a merge.
#pragma once

#include <array>
#include <cstdint>

namespace railpass::select {

/// A rank in a tree whose root is rank 0: with the ranks' numbers written in base `radix`, a parent
/// has a 0 where its child has its last other digit, whose place is the child's level. Binomial if
/// the radix is 2.
struct tree_place {
  int rank = 0, num_ranks = 1, radix = 2;

  /// Levels above the leaves.
  int height() const {
    int levels = 0;
    while (unit_of(levels) < num_ranks) ++levels;
    return levels;
  }
  int level() const {
    if (rank == 0) return height();
    int level = 0;
    while (rank % unit_of(level + 1) == 0) ++level;
    return level;
  }
  /// Of any rank but 0.
  int parent() const { return rank - int(rank % unit_of(level() + 1)); }
  int num_children() const {
    const int most = level() * (radix - 1);
    int children = 0;
    while (children < most && child(children) < num_ranks) ++children;
    return children;
  }
  /// radix - 1 on each level, the lowest ones first.
  int child(int i) const { return rank + int(unit_of(i / (radix - 1))) * (i % (radix - 1) + 1); }

 private:
  std::int64_t unit_of(int level) const {
    std::int64_t unit = 1;
    while (level-- > 0) unit *= radix;
    return unit;
  }
};

/// The trees of a rank's merges: of those that are spread over calls, in which it should have one
/// message to receive and one to send in each; and of those made at once, in which latencies add
/// up.
inline std::array<tree_place, 2> merge_trees(int rank, int num_ranks) {
  return {tree_place{rank, num_ranks, 2}, tree_place{rank, num_ranks, 4}};
}

}  // namespace railpass::select

// SPDX-License-Identifier: BSL-1.0
//
// The trees along which ranks send reports and replies in a synchronisation ("merge").
#pragma once

#include <array>
#include <cstdint>

namespace railpass::select {

/// A rank's position in a tree with root 0. With ranks in base `radix`, a parent has 0 at the
/// position of its child's last digit other than 0; that position is the child's level. Radix 2 is
/// a binomial tree.
struct tree_position {
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
  /// For all ranks except 0.
  int parent() const { return rank - int(rank % unit_of(level() + 1)); }
  int num_children() const {
    const int most = level() * (radix - 1);
    int children = 0;
    while (children < most && child(children) < num_ranks) ++children;
    return children;
  }
  /// radix - 1 children on each level, the lowest level first.
  int child(int i) const { return rank + int(unit_of(i / (radix - 1))) * (i % (radix - 1) + 1); }

 private:
  std::int64_t unit_of(int level) const {
    std::int64_t unit = 1;
    while (level-- > 0) unit *= radix;
    return unit;
  }
};

/// The trees of a rank's synchronisations. In the first, spread over calls, a rank should have at
/// most one message to receive and one to send per call. In the second, within one call, latencies
/// add up.
inline std::array<tree_position, 2> merge_trees(int rank, int num_ranks) {
  return {tree_position{rank, num_ranks, 2}, tree_position{rank, num_ranks, 4}};
}

}  // namespace railpass::select

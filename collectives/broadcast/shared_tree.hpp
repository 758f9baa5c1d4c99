// SPDX-License-Identifier: BSL-1.0
//
// Shared memory, a tree: each rank reads what its parent has written, and writes it for its
// children. p = 8, fan_out 4: 0 publishes, 1, 3, 5 and 7 fetch that, and 1, 3 and 5 publish it for
// 2, 4 and 6.
//
// Cost: a line from cache to cache and two copies for each level, which overlap from segment to
// segment.
// Good when: many ranks share a node. Poor when: they are few, or the message is long.
// Needs: memory that all ranks share; 9 to 256 ranks.
// Source: Graham, Shipman: MPI support for multi-core architectures: optimized shared memory
// collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, shared_tree)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_SHARED_TREE)
#define RAILPASS_COLLECTIVES_BROADCAST_SHARED_TREE

#include "collectives/shared.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_in_shared_tree(const shape& s, const tree_position& tree) {
  builder b(s, cell_bytes, 1);
  if (s.rank == 0)
    b.publish(buffer::output, {}, 0, {}, by_segments);
  else
    fetch_and_pass_on(b, tree, 0, no_step);
  return b.finish();
}
inline schedule build_shared_tree(const shape& s, const parameters& values) {
  return build_in_shared_tree(s, shared_tree_of(s, values));
}

inline double time_down_s(const shared_tree_times& t, double bytes) {
  return t.down_first_s + (pieces_of(bytes) - 1) * t.down_s;
}
inline double cost_shared_tree(const cost_query& q, const parameters& values) {
  return time_down_s(shared_tree_times(q, values, q.bytes), q.bytes);
}

inline constexpr algorithm shared_tree{.op = collective::broadcast,
                                       .name = "shared_tree",
                                       .source = shared_source,
                                       .needs = shared_tree_needs,
                                       .parameter_list = {shared_fan_out_parameter},
                                       .build = build_shared_tree,
                                       .cost_s = cost_shared_tree};

}  // namespace railpass::collectives::broadcast

#endif

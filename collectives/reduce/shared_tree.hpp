// SPDX-License-Identifier: BSL-1.0
//
// Shared memory, a tree: each rank adds up what its children have written and its own, in rank
// order, and writes the sum for its parent. p = 8, fan_out 4: 2, 4, 6 and 7 publish; 1, 3 and 5 add
// 2's, 4's and 6's to their own and publish; 0 fetches 7's, combines 5's, 3's and 1's, and adds its
// own. In rank order the sum arrives at rank 0, from where another root fetches it.
//
// Cost: fan_out lines from cache to cache and fan_out n gamma for each level, which overlap from
// segment to segment.
// Good when: many ranks share a node. Poor when: they are few.
// Needs: memory that all ranks share; 9 to 256 ranks; rank order is kept.
// Source: Graham, Shipman: MPI support for multi-core architectures: optimized shared memory
// collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce, shared_tree)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SHARED_TREE)
#define RAILPASS_COLLECTIVES_REDUCE_SHARED_TREE

#include "collectives/shared.hpp"

namespace railpass::collectives::reduce {

inline schedule build_in_shared_tree(const shape& s, const tree_position& tree) {
  builder b(s, cell_bytes, 1);
  step_id given = no_step;
  if (tree.children.empty()) {
    given = b.publish(buffer::input, {}, 0, {}, by_segments);
  } else {
    // In place the root's input would be overwritten where it is still needed.
    const step_id sum = sum_of_subtree(b, s, tree, 0);
    if (s.rank != 0 || s.result_rank != 0)
      given = b.publish(buffer::scratch0, {}, 0, {each(sum)}, by_segments);
    else
      b.copy(buffer::scratch0, buffer::output, {}, {each(sum)}, by_segments);
  }
  if (s.rank == s.result_rank && s.rank != 0)
    b.fetch(0, 0, buffer::output, {}, {each(given)}, by_segments);
  return b.finish();
}
inline schedule build_shared_tree(const shape& s, const parameters& values) {
  return build_in_shared_tree(s, shared_tree_of(s, values));
}

inline double time_up_s(const shared_tree_times& t, double bytes) {
  return t.up_first_s + (pieces_of(bytes) - 1) * t.up_s;
}
inline double cost_shared_tree(const cost_query& q, const parameters& values) {
  return time_up_s(shared_tree_times(q, values, q.bytes), q.bytes);
}

inline constexpr algorithm shared_tree{.op = collective::reduce,
                                       .name = "shared_tree",
                                       .source = shared_source,
                                       .needs = shared_tree_needs,
                                       .scratch = {.messages = 1},
                                       .parameter_list = {shared_fan_out_parameter},
                                       .build = build_shared_tree,
                                       .cost_s = cost_shared_tree};

}  // namespace railpass::collectives::reduce

#endif

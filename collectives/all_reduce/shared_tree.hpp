// SPDX-License-Identifier: BSL-1.0
//
// Shared memory, a tree: up it goes as in reduce, at place 0, and down as in broadcast, at place 1.
// p = 8, fan_out 4: 2, 4, 6 and 7 publish; 1, 3 and 5 add 2's, 4's and 6's to their own and
// publish; 0 adds up 7's, 5's, 3's, 1's and its own and publishes the sum; 1, 3, 5 and 7 fetch it,
// and 1, 3 and 5 publish it for 2, 4 and 6.
//
// Cost: (fan_out + 1) lines from cache to cache and fan_out n gamma for each level.
// Good when: many ranks share a node and messages are short. Poor when: they are longer than a
// cell, as the sum of a segment comes down before the next one goes up.
// Needs: memory that all ranks share; 9 to 256 ranks; rank order is kept.
// Source: Graham, Shipman: MPI support for multi-core architectures: optimized shared memory
// collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_reduce, shared_tree)
#elif !defined(RAILPASS_COLLECTIVES_ALL_REDUCE_SHARED_TREE)
#define RAILPASS_COLLECTIVES_ALL_REDUCE_SHARED_TREE

#include "collectives/shared.hpp"

namespace railpass::collectives::all_reduce {

inline schedule build_in_shared_tree(const shape& s, const tree_position& tree) {
  builder b(s, cell_bytes, 2);
  if (s.rank == 0) {
    const step_id sum = sum_of_subtree(b, s, tree, 0);
    b.publish(buffer::scratch0, {}, 1, {each(sum)}, by_segments);
    b.copy(buffer::scratch0, buffer::output, {}, {each(sum)}, by_segments);
    return b.finish();
  }
  const step_id given =
      tree.children.empty()
          ? b.publish(buffer::input, {}, 0, {}, by_segments)
          : b.publish(buffer::scratch0, {}, 0, {each(sum_of_subtree(b, s, tree, 0))}, by_segments);
  fetch_and_pass_on(b, tree, 1, given);
  return b.finish();
}
inline schedule build_shared_tree(const shape& s, const parameters& values) {
  return build_in_shared_tree(s, shared_tree_of(s, values));
}

inline double time_up_and_down_s(const shared_tree_times& t, double bytes) {
  return pieces_of(bytes) * (t.up_first_s + t.down_first_s);
}
inline double cost_shared_tree(const cost_query& q, const parameters& values) {
  return time_up_and_down_s(shared_tree_times(q, values, q.bytes), q.bytes);
}

inline constexpr algorithm shared_tree{.op = collective::all_reduce,
                                       .name = "shared_tree",
                                       .source = shared_source,
                                       .needs = shared_tree_needs,
                                       .scratch = {.messages = 1},
                                       .parameter_list = {shared_fan_out_parameter},
                                       .build = build_shared_tree,
                                       .cost_s = cost_shared_tree};

}  // namespace railpass::collectives::all_reduce

#endif

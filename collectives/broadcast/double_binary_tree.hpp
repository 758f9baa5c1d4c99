// SPDX-License-Identifier: BSL-1.0
//
// Two binary trees: half of the message goes down each. A rank inside one tree is a leaf of the
// other one, so that nearly all ranks receive and send the message once. p = 8: 0->4 4->2 4->6 2->1
// 2->3 6->5 6->7 with one half; 0->3 3->1 3->5 1->7 1->2 5->4 5->6 with the other one.
//
// Cost, in S segments of m bytes per half: log2 p (alpha + 2 m beta) + S 2 m beta, so n beta for
// long messages, as a pipeline, but with log2 p hops instead of p. Good when: messages are long and
// ranks are many. Poor when: messages are short. Needs: nothing. Source: Sanders, Speck, Traeff:
// Two-tree algorithms for full bandwidth broadcast, reduction and scan, Parallel Computing 35(12),
// 2009, doi:10.1016/j.parco.2009.09.001.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, double_binary_tree)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_DOUBLE_BINARY_TREE)
#define RAILPASS_COLLECTIVES_BROADCAST_DOUBLE_BINARY_TREE

#include "collectives/trees.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_double_binary_tree(const shape& s, const parameters& values) {
  return build_tree_broadcast(s, double_binary_trees(s.rank, s.num_ranks), values[0]);
}

inline double cost_double_binary_tree(const cost_query& q, const parameters& values) {
  const stream st(q.bytes / 2, values[0], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  return double_binary_depth_s(q.num_ranks, r, 0) +
         (st.segments - 1) * double_binary_stage_s(q.num_ranks, r, 0);
}

inline constexpr algorithm double_binary_tree{
    .op = collective::broadcast,
    .name = "double_binary_tree",
    .source = "Sanders et al. 2009, doi:10.1016/j.parco.2009.09.001",
    .needs = {},
    .parameter_list = {segment_bytes_parameter},
    .build = build_double_binary_tree,
    .cost_s = cost_double_binary_tree};

}  // namespace railpass::collectives::broadcast

#endif

// SPDX-License-Identifier: BSL-1.0
//
// Two binary trees: half of the message is summed up along each and comes down the same tree,
// segment by segment; both directions work at once. A rank inside one tree is a leaf of the other
// one. p = 8: 1->2 3->2 5->6 7->6 2->4 6->4 4->0 and back with one half; 7->1 2->1 4->5 6->5 1->3
// 5->3 3->0 and back with the other one.
//
// Cost, in S segments of m bytes per half: 2 log2 p (alpha + 2 m beta) + S 4 m beta, so 2 n beta
// for long messages, with log2 p hops. Good when: messages are long and ranks are many. Poor when:
// messages are short. Needs: a commutative operation (a rank stands between its two subtrees).
// Source: Sanders, Speck, Traeff: Two-tree algorithms for full bandwidth broadcast, reduction and
// scan, Parallel Computing 35(12), 2009, doi:10.1016/j.parco.2009.09.001.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_reduce, double_binary_tree)
#elif !defined(RAILPASS_COLLECTIVES_ALL_REDUCE_DOUBLE_BINARY_TREE)
#define RAILPASS_COLLECTIVES_ALL_REDUCE_DOUBLE_BINARY_TREE

#include "collectives/trees.hpp"

namespace railpass::collectives::all_reduce {

inline schedule build_double_binary_tree(const shape& s, const parameters& values) {
  return build_tree_all_reduce(s, double_binary_trees(s.rank, s.num_ranks), values[0]);
}

inline double cost_double_binary_tree(const cost_query& q, const parameters& values) {
  const stream st(q.bytes / 2, values[0], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  const double reduce_s = q.machine.reduce.time_s(st.segment_bytes);
  const double up_s = double_binary_depth_s(q.num_ranks, r, reduce_s);
  if (q.num_ranks == 2)
    return up_s + r.far.one_way_s + (st.segments - 1) * r.far.stage_s(2, 2, 2 * reduce_s);
  // Up and down an inner rank has three messages each way, and as a leaf of the other tree one. The
  // way up one tree crosses the way down the other: the messages hold each other up, about half as
  // long again as they take alone.
  return 1.45 * (up_s + double_binary_depth_s(q.num_ranks, r, 0) +
                 (st.segments - 1) * r.far.stage_s(4, 4, 2 * reduce_s));
}

inline constexpr algorithm double_binary_tree{
    .op = collective::all_reduce,
    .name = "double_binary_tree",
    .source = "Sanders et al. 2009, doi:10.1016/j.parco.2009.09.001",
    .needs = {.commutative = true},
    .scratch = {.messages = 2},
    .parameter_list = {segment_bytes_parameter},
    .build = build_double_binary_tree,
    .cost_s = cost_double_binary_tree};

}  // namespace railpass::collectives::all_reduce

#endif

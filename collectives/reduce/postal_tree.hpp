// SPDX-License-Identifier: BSL-1.0
//
// Fibonacci tree: the broadcast that reaches all ranks in the fewest turns, if a message takes
// `latency` turns, run backwards. With latency 1 it is the binomial tree, and flatter the longer
// messages fly. p = 8, latency 2: 4->3, 7->5 6->5, then 1->0 2->0 3->0 5->0.
//
// Cost: T max(o + n gamma, g), T the number of turns.
// Good when: messages are short and the start of a message is cheap against its flight.
// Poor when: n beta dominates.
// Needs: nothing; rank order is kept.
// Source: Bar-Noy, Kipnis: Designing broadcasting algorithms in the postal model for
// message-passing systems, Mathematical Systems Theory 27(5), 1994, doi:10.1007/BF01184933.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce, postal_tree)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_POSTAL_TREE)
#define RAILPASS_COLLECTIVES_REDUCE_POSTAL_TREE

#include "collectives/trees.hpp"

namespace railpass::collectives::reduce {

inline schedule build_postal_tree(const shape& s, const parameters& values) {
  return build_tree_reduce(s, {{postal_tree(s.rank, s.num_ranks, values[0])}}, values[1]);
}

inline double cost_postal_tree(const cost_query& q, const parameters& values) {
  const stream st(q.bytes, values[1], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  const double reduce_s = q.machine.reduce.time_s(st.segment_bytes);
  return postal_depth_s(q.num_ranks, values[0], r, reduce_s) +
         q.machine.copy.time_s(st.segment_bytes) +
         (st.segments - 1) * postal_root_s(q.num_ranks, values[0], r, reduce_s);
}

inline constexpr algorithm postal_tree{
    .op = collective::reduce,
    .name = "postal_tree",
    .source = "Bar-Noy and Kipnis 1994, doi:10.1007/BF01184933",
    .needs = {},
    .scratch = {.messages = 2},
    .parameter_list = {parameter{"latency", {4, 2, 3, 6, 8}}, segment_bytes_parameter},
    .build = build_postal_tree,
    .cost_s = cost_postal_tree};

}  // namespace railpass::collectives::reduce

#endif

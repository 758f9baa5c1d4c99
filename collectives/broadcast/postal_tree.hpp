// SPDX-License-Identifier: BSL-1.0
//
// Fibonacci tree: every rank that has the message sends it to a new one each turn, and a message
// takes `latency` turns. The tree is the one that reaches all ranks in the fewest turns: with
// latency 1 the binomial one, and flatter the longer messages fly. p = 8, latency 2: 0->5 0->3 0->2
// 0->1, 5->7 5->6, 3->4.
//
// Cost: T max(o, g), T the number of turns, if latency is (alpha + n beta) / max(o, g).
// Good when: messages are short and the start of a message is cheap against its flight.
// Poor when: n beta dominates.
// Needs: nothing.
// Source: Bar-Noy, Kipnis: Designing broadcasting algorithms in the postal model for
// message-passing systems, Mathematical Systems Theory 27(5), 1994, doi:10.1007/BF01184933.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, postal_tree)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_POSTAL_TREE)
#define RAILPASS_COLLECTIVES_BROADCAST_POSTAL_TREE

#include "collectives/trees.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_postal_tree(const shape& s, const parameters& values) {
  return build_tree_broadcast(s, {{postal_tree(s.rank, s.num_ranks, values[0]), {}, true}},
                              values[1]);
}

inline double cost_postal_tree(const cost_query& q, const parameters& values) {
  const stream st(q.bytes, values[1], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  return postal_depth_s(q.num_ranks, values[0], r, 0) +
         (st.segments - 1) * postal_root_s(q.num_ranks, values[0], r, 0);
}

inline constexpr algorithm postal_tree{
    .op = collective::broadcast,
    .name = "postal_tree",
    .source = "Bar-Noy and Kipnis 1994, doi:10.1007/BF01184933",
    .needs = {},
    .parameter_list = {parameter{"latency", {4, 2, 3, 6, 8}}, segment_bytes_parameter},
    .build = build_postal_tree,
    .cost_s = cost_postal_tree};

}  // namespace railpass::collectives::broadcast

#endif

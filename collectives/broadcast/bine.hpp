// SPDX-License-Identifier: BSL-1.0
//
// Bine tree: in every round each rank that has the message sends it to one that has not, a third of
// their range of ranks away. p = 8: 0->3, then 0->7 3->4, then 0->1 7->6 3->2 4->5.
//
// Cost: ceil(log2 p) * (alpha + n beta).
// Good when: messages are short, and leaving a group of neighbours is dear. Poor when: n beta
// dominates (the root sends everything log2 p times).
// Needs: nothing.
// Source: De Sensi et al.: Bine trees: enhancing collective operations by optimizing communication
// locality, SC 2025, doi:10.1145/3712285.3759835.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, bine)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_BINE)
#define RAILPASS_COLLECTIVES_BROADCAST_BINE

#include "collectives/bine.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_bine(const shape& s, const parameters&) {
  return build_tree_broadcast(s, {{bine_tree(s.rank, s.num_ranks).tree, {}, true}}, 0);
}

inline double cost_bine(const cost_query& q, const parameters&) {
  return bine_depth_s(q.num_ranks, routes(q, q.bytes), 0);
}

inline constexpr algorithm bine{.op = collective::broadcast,
                                .name = "bine",
                                .source = bine_source,
                                .needs = {},
                                .build = build_bine,
                                .cost_s = cost_bine};

}  // namespace railpass::collectives::broadcast

#endif

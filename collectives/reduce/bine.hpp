// SPDX-License-Identifier: BSL-1.0
//
// Bine tree: partial sums go up, in every round half of the ranks that are left send theirs, at
// last over a third of all ranks. p = 8: 1->0 6->7 2->3 5->4, then 7->0 4->3, then 3->0.
//
// Cost: ceil(log2 p) * (alpha + n beta + n gamma).
// Good when: messages are short, and leaving a group of neighbours is dear. Poor when: n beta
// dominates (log2 p messages over the root's link).
// Needs: a commutative operation (ranks below and above are added by turns).
// Source: De Sensi et al.: Bine trees: enhancing collective operations by optimizing communication
// locality, SC 2025, doi:10.1145/3712285.3759835.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce, bine)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_BINE)
#define RAILPASS_COLLECTIVES_REDUCE_BINE

#include "collectives/bine.hpp"

namespace railpass::collectives::reduce {

inline schedule build_bine(const shape& s, const parameters&) {
  return build_tree_reduce(s, {{bine_tree(s.rank, s.num_ranks).tree}}, 0);
}

inline double cost_bine(const cost_query& q, const parameters&) {
  return bine_depth_s(q.num_ranks, routes(q, q.bytes), q.machine.reduce.time_s(q.bytes)) +
         q.machine.copy.time_s(q.bytes);
}

inline constexpr algorithm bine{.op = collective::reduce,
                                .name = "bine",
                                .source = bine_source,
                                .needs = {.commutative = true},
                                .scratch = {.messages = 2},
                                .build = build_bine,
                                .cost_s = cost_bine};

}  // namespace railpass::collectives::reduce

#endif

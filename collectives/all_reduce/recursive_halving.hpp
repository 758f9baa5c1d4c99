// SPDX-License-Identifier: BSL-1.0
//
// Recursive halving and doubling with far partners first: the reduce-scatter exchanges halves with
// the rank half of all ranks away, then quarters with the one a quarter away, and so on; the
// all-gather goes back by the same partners. As reduce_scatter_allgather with the distances in the
// other order: long messages go far once, and most rounds stay near. p = 8: 0-4 1-5 2-6 3-7 with
// 1/2 of the message, 0-2 1-3 4-6 5-7 with 1/4, 0-1 2-3 4-5 6-7 with 1/8; then the same in reverse
// with complete blocks.
//
// Cost: 2 log2 p alpha + 2 (p-1)/p n beta + (p-1)/p n gamma, plus 2 (alpha + n beta) + n gamma when
// folded.
// Good when: n beta dominates, p is a power of two and neighbours are not nearer than others.
// Poor when: messages are very short.
// Needs: a commutative operation (ranks far apart are combined first).
// Source: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
// MPICH, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_reduce, recursive_halving)
#elif !defined(RAILPASS_COLLECTIVES_ALL_REDUCE_RECURSIVE_HALVING)
#define RAILPASS_COLLECTIVES_ALL_REDUCE_RECURSIVE_HALVING

#include "collectives/all_reduce/reduce_scatter_allgather.hpp"

namespace railpass::collectives::all_reduce {

inline schedule build_recursive_halving(const shape& s, const parameters&) {
  return build_halving_doubling(s, halving_order::far_first);
}

inline double cost_recursive_halving(const cost_query& q, const parameters&) {
  return halving_doubling_s(q, halving_order::far_first);
}

inline constexpr algorithm recursive_halving{
    .op = collective::all_reduce,
    .name = "recursive_halving",
    .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
    .needs = {.commutative = true},
    .scratch = {.messages = 2},
    .build = build_recursive_halving,
    .cost_s = cost_recursive_halving};

}  // namespace railpass::collectives::all_reduce

#endif

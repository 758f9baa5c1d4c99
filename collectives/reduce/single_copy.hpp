// SPDX-License-Identifier: BSL-1.0
//
// Single copies: every rank reads its block of all inputs in the other ranks' memory and sums them;
// the root reads the sums, or each writes its own to the root. p = 8: r gets block r of r + 1, r +
// 2,
// ..., r - 1, and puts the sum to the root.
//
// Cost: p system calls, n of copies and n gamma on every rank, and where the root reads as much
// again on that. Good when: messages are long. Poor when: they are short against p system calls.
// Needs: processes that may copy from each other's memory; at most 64 ranks; rank order is kept.
// Source: Ma, Bosilca, Bouteiller, Dongarra: Kernel-assisted and topology-aware MPI collective
// communications on multicore/many-core platforms, JPDC 73 (2013), doi:10.1016/j.jpdc.2013.01.015.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce, single_copy)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SINGLE_COPY)
#define RAILPASS_COLLECTIVES_REDUCE_SINGLE_COPY

#include "collectives/single_copy.hpp"

namespace railpass::collectives::reduce {

inline schedule build_single_copy(const shape& s, const parameters& values) {
  return sum_of_opened(s, values, s.result_rank);
}

inline double cost_single_copy(const cost_query& q, const parameters& values) {
  return sum_of_offered_s(q) + rooted_hand_over_s(q, values[0] == 0, q.bytes / q.num_ranks);
}

inline constexpr algorithm single_copy{.op = collective::reduce,
                                       .name = "single_copy",
                                       .source = single_copy_source,
                                       .needs = single_copy_needs,
                                       .scratch = {.blocks = 2},
                                       .parameter_list = {giver_writes_parameter},
                                       .build = build_single_copy,
                                       .cost_s = cost_single_copy};

}  // namespace railpass::collectives::reduce

#endif

// SPDX-License-Identifier: BSL-1.0
//
// Single copies: every rank reads its block of all inputs in the others' memory, one after the
// other, and adds them up. p = 8: r gets block r of r + 1, r + 2, ..., r - 1.
//
// Cost: p - 1 system calls, n of copies and n gamma on every rank.
// Good when: messages are long. Poor when: they are short against p system calls.
// Needs: processes that may copy from each other's memory; at most 64 ranks; rank order is kept.
// Source: Ma, Bosilca, Bouteiller, Dongarra: Kernel-assisted and topology-aware MPI collective
// communications on multicore/many-core platforms, JPDC 73 (2013), doi:10.1016/j.jpdc.2013.01.015.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce_scatter_block, single_copy)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SCATTER_BLOCK_SINGLE_COPY)
#define RAILPASS_COLLECTIVES_REDUCE_SCATTER_BLOCK_SINGLE_COPY

#include "collectives/single_copy.hpp"

namespace railpass::collectives::reduce_scatter_block {

inline schedule build_single_copy(const shape& s, const parameters&) {
  builder b(s, 0, s.num_ranks);
  offer_to_others(b, s);
  sum_of_offered(b, s, buffer::output, buffer::scratch0);
  return b.finish();
}

inline double cost_single_copy(const cost_query& q, const parameters&) {
  return sum_of_offered_s(q);
}

inline constexpr algorithm single_copy{.op = collective::reduce_scatter_block,
                                       .name = "single_copy",
                                       .source = single_copy_source,
                                       .needs = single_copy_needs,
                                       .scratch = {.blocks = 1},
                                       .build = build_single_copy,
                                       .cost_s = cost_single_copy};

}  // namespace railpass::collectives::reduce_scatter_block

#endif

// SPDX-License-Identifier: BSL-1.0
//
// Shared memory, direct: every rank adds up its block of what all have written and writes the sum,
// which the root reads. p = 8: r publishes the blocks of all others, combines block r of 7, 6, down
// to 0 and publishes that; the root fetches the other blocks. Place k of rank r holds block
// k of its input, and at place r the sum of block r.
//
// Cost: two lines from cache to cache and more, n of copies and n gamma on every rank, and n more
// of copies at the root.
// Good when: messages are long. Poor when: they are short against p steps.
// Needs: memory that all ranks share; at most 16 ranks; rank order is kept.
// Source: Graham, Shipman: MPI support for multi-core architectures: optimized shared memory
// collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce, shared_direct)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SHARED_DIRECT)
#define RAILPASS_COLLECTIVES_REDUCE_SHARED_DIRECT

#include "collectives/shared.hpp"

namespace railpass::collectives::reduce {

inline schedule build_shared_direct(const shape& s, const parameters&) {
  const bool is_root = s.rank == s.result_rank;
  return sum_of_blocks(s, is_root, !is_root);
}

inline constexpr algorithm shared_direct{.op = collective::reduce,
                                         .name = "shared_direct",
                                         .source = shared_source,
                                         .needs = shared_blocks_needs,
                                         .scratch = {.blocks = 1},
                                         .build = build_shared_direct,
                                         .cost_s = sum_of_blocks_s};

}  // namespace railpass::collectives::reduce

#endif

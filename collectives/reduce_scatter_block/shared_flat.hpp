// SPDX-License-Identifier: BSL-1.0
//
// Shared memory, flat: every rank writes the blocks of all others, each at a place of its own, and
// adds up its block of theirs. p = 8: r publishes block k at place k, and combines what is at place
// r of 7, 6, down to 0, with its own among them.
//
// Cost: p - 1 lines from cache to cache, n of copies and n gamma on every rank.
// Good when: all ranks are on one node. Poor when: they are many.
// Needs: memory that all ranks share; at most 16 ranks; rank order is kept.
// Source: Graham, Shipman: MPI support for multi-core architectures: optimized shared memory
// collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce_scatter_block, shared_flat)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SCATTER_BLOCK_SHARED_FLAT)
#define RAILPASS_COLLECTIVES_REDUCE_SCATTER_BLOCK_SHARED_FLAT

#include "collectives/shared.hpp"

namespace railpass::collectives::reduce_scatter_block {

inline schedule build_shared_flat(const shape& s, const parameters&) {
  builder b(s, cell_bytes, s.num_ranks);
  publish_for_others(b, s);
  combine_own_block(b, s, buffer::output);
  return b.finish();
}

inline double cost_shared_flat(const cost_query& q, const parameters&) {
  const double others = q.num_ranks - 1;
  return shared_s(q, q.bytes / q.num_ranks, others, 0, others) + q.machine.copy.alpha_s;
}

inline constexpr algorithm shared_flat{.op = collective::reduce_scatter_block,
                                       .name = "shared_flat",
                                       .source = shared_source,
                                       .needs = shared_blocks_needs,
                                       .build = build_shared_flat,
                                       .cost_s = cost_shared_flat};

}  // namespace railpass::collectives::reduce_scatter_block

#endif

// SPDX-License-Identifier: BSL-1.0
//
// Shared memory, flat: the root writes the blocks of all others, each at a place of its own, and
// they read theirs. p = 8: 0 publishes block k at place k, k fetches it.
//
// Cost: a line from cache to cache, and the message copied at the root.
// Good when: all ranks are on one node. Poor when: they are many.
// Needs: memory that all ranks share; at most 16 ranks.
// Source: Graham, Shipman: MPI support for multi-core architectures: optimized shared memory
// collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(scatter, shared_flat)
#elif !defined(RAILPASS_COLLECTIVES_SCATTER_SHARED_FLAT)
#define RAILPASS_COLLECTIVES_SCATTER_SHARED_FLAT

#include "collectives/shared.hpp"

namespace railpass::collectives::scatter {

inline schedule build_shared_flat(const shape& s, const parameters&) {
  const int p = s.num_ranks;
  builder b(s, cell_bytes, p);
  const auto block = [&](int k) { return block_of(k, p); };
  if (s.rank != 0) {
    b.fetch(0, s.rank, buffer::output, block(s.rank), {}, by_segments);
    return b.finish();
  }
  for (int k = 1; k < p; ++k) b.publish(buffer::input, block(k), k, {}, by_segments);
  b.copy(buffer::input, buffer::output, block(0), {}, by_segments);
  return b.finish();
}

inline double cost_shared_flat(const cost_query& q, const parameters&) {
  const double block = q.bytes / q.num_ranks;
  return shared_s(q, block, q.num_ranks - 1, 1, 0);
}

inline constexpr algorithm shared_flat{.op = collective::scatter,
                                       .name = "shared_flat",
                                       .source = shared_source,
                                       .needs = shared_blocks_needs,
                                       .build = build_shared_flat,
                                       .cost_s = cost_shared_flat};

}  // namespace railpass::collectives::scatter

#endif

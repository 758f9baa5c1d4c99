// SPDX-License-Identifier: BSL-1.0
//
// Shared memory, flat: every other rank writes its block, the root reads them. p = 8: 1 to 7
// publish, 0 fetches from each.
//
// Cost: p - 1 lines from cache to cache, and the message copied at the root.
// Good when: all ranks are on one node. Poor when: they are many.
// Needs: memory that all ranks share; at most 64 ranks.
// Source: Graham, Shipman: MPI support for multi-core architectures: optimized shared memory
// collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(gather, shared_flat)
#elif !defined(RAILPASS_COLLECTIVES_GATHER_SHARED_FLAT)
#define RAILPASS_COLLECTIVES_GATHER_SHARED_FLAT

#include "collectives/shared.hpp"

namespace railpass::collectives::gather {

inline schedule build_shared_flat(const shape& s, const parameters&) {
  const int p = s.num_ranks;
  builder b(s, cell_bytes, 1);
  const auto block = [&](int k) { return block_of(k, p); };
  if (s.rank != 0) {
    b.publish(buffer::input, block(s.rank), 0, {}, by_segments);
    return b.finish();
  }
  b.copy(buffer::input, buffer::output, block(0), {}, by_segments);
  for (int k = 1; k < p; ++k) b.fetch(k, 0, buffer::output, block(k), {}, by_segments);
  return b.finish();
}

inline double cost_shared_flat(const cost_query& q, const parameters&) {
  const double block = q.bytes / q.num_ranks;
  return shared_s(q, block, 0, q.num_ranks - 1, 0) + q.machine.copy.time_s(block);
}

inline constexpr algorithm shared_flat{.op = collective::gather,
                                       .name = "shared_flat",
                                       .source = shared_source,
                                       .needs = shared_reads_needs,
                                       .build = build_shared_flat,
                                       .cost_s = cost_shared_flat};

}  // namespace railpass::collectives::gather

#endif

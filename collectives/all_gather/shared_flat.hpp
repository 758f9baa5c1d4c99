// SPDX-License-Identifier: BSL-1.0
//
// Shared memory, flat: every rank writes its block and reads those of all others. p = 8: each
// publishes, and fetches from the 7 others.
//
// Cost: p - 1 lines from cache to cache, and the message copied once on every rank.
// Good when: all ranks are on one node. Poor when: they are many.
// Needs: memory that all ranks share; at most 64 ranks.
// Source: Graham, Shipman: MPI support for multi-core architectures: optimized shared memory
// collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gather, shared_flat)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHER_SHARED_FLAT)
#define RAILPASS_COLLECTIVES_ALL_GATHER_SHARED_FLAT

#include "collectives/shared.hpp"

namespace railpass::collectives::all_gather {

inline schedule build_shared_flat(const shape& s, const parameters&) {
  const int p = s.num_ranks, r = s.rank;
  builder b(s, cell_bytes, 1);
  const auto block = [&](int k) { return block_of(k, p); };
  b.publish(buffer::input, block(r), 0, {}, by_segments);
  b.copy(buffer::input, buffer::output, block(r), {}, by_segments);
  for (int k = 1; k < p; ++k)
    b.fetch(wrap(r + k, p), 0, buffer::output, block(wrap(r + k, p)), {}, by_segments);
  return b.finish();
}

inline double cost_shared_flat(const cost_query& q, const parameters&) {
  const double block = q.bytes / q.num_ranks;
  return shared_s(q, block, 1, q.num_ranks - 1, 0) + q.machine.copy.time_s(block);
}

inline constexpr algorithm shared_flat{.op = collective::all_gather,
                                       .name = "shared_flat",
                                       .source = shared_source,
                                       .needs = shared_reads_needs,
                                       .build = build_shared_flat,
                                       .cost_s = cost_shared_flat};

}  // namespace railpass::collectives::all_gather

#endif

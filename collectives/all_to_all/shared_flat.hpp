// SPDX-License-Identifier: BSL-1.0
//
// Shared memory, flat: every rank writes the blocks of all others, each at a place of its own, and
// reads its block of theirs. p = 8: r publishes block k at place k, and fetches from each other k
// what is at place r.
//
// Cost: p - 1 lines from cache to cache, and two copies of the message on every rank.
// Good when: all ranks are on one node. Poor when: they are many.
// Needs: memory that all ranks share; at most 16 ranks.
// Source: Graham, Shipman: MPI support for multi-core architectures: optimized shared memory
// collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_to_all, shared_flat)
#elif !defined(RAILPASS_COLLECTIVES_ALL_TO_ALL_SHARED_FLAT)
#define RAILPASS_COLLECTIVES_ALL_TO_ALL_SHARED_FLAT

#include "collectives/shared.hpp"

namespace railpass::collectives::all_to_all {

inline schedule build_shared_flat(const shape& s, const parameters&) {
  const int p = s.num_ranks, r = s.rank;
  builder b(s, cell_bytes, p);
  const auto block = [&](int k) { return block_of(k, p); };
  publish_for_others(b, s);
  b.copy(buffer::input, buffer::output, block(r), {}, by_segments);
  for (int k = 1; k < p; ++k) {
    const int from = wrap(r - k, p);
    b.fetch(from, r, buffer::output, block(from), {}, by_segments);
  }
  return b.finish();
}

inline double cost_shared_flat(const cost_query& q, const parameters&) {
  const double others = q.num_ranks - 1, block = q.bytes / q.num_ranks;
  return shared_s(q, block, others, others, 0) + q.machine.copy.time_s(block);
}

inline constexpr algorithm shared_flat{.op = collective::all_to_all,
                                       .name = "shared_flat",
                                       .source = shared_source,
                                       .needs = shared_blocks_needs,
                                       .build = build_shared_flat,
                                       .cost_s = cost_shared_flat};

}  // namespace railpass::collectives::all_to_all

#endif

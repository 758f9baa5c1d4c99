// SPDX-License-Identifier: BSL-1.0
//
// Shared memory, flat: every rank writes that it is there and looks at all others. p = 8: each
// publishes, and fetches from the 7 others.
//
// Cost: p - 1 lines from cache to cache. Good when: ranks are few. Poor when: they are many.
// Needs: memory that all ranks share; at most 8 ranks.
// Source: Graham, Shipman: MPI support for multi-core architectures: optimized shared memory
// collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(barrier, shared_flat)
#elif !defined(RAILPASS_COLLECTIVES_BARRIER_SHARED_FLAT)
#define RAILPASS_COLLECTIVES_BARRIER_SHARED_FLAT

#include "collectives/shared.hpp"

namespace railpass::collectives::barrier {

inline schedule build_shared_flat(const shape& s, const parameters&) {
  builder b(s, 0, 1);
  const auto byte_of = [&](int k) { return block_range{.parts = s.num_ranks, .first = k}; };
  b.publish(buffer::input, byte_of(s.rank), 0);
  for (int k = 0; k < s.num_ranks; ++k)
    if (k != s.rank) b.fetch(k, 0, buffer::output, byte_of(k));
  return b.finish();
}

inline double cost_shared_flat(const cost_query& q, const parameters&) {
  return shared_s(q, 1, 1, q.num_ranks - 1, 0);
}

inline constexpr algorithm shared_flat{.op = collective::barrier,
                                       .name = "shared_flat",
                                       .source = shared_source,
                                       .needs = shared_flat_needs,
                                       .build = build_shared_flat,
                                       .cost_s = cost_shared_flat};

}  // namespace railpass::collectives::barrier

#endif

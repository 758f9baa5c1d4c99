// SPDX-License-Identifier: BSL-1.0
//
// Shared memory, flat: the root writes, all others read. p = 8: 0 publishes, 1 to 7 fetch.
//
// Cost: one line from cache to cache and two copies, which overlap where there are several cells.
// Good when: all ranks are on one node. Poor when: many ranks wait for one writer's cache lines.
// Needs: memory that all ranks share; at most 8 ranks.
// Source: Graham, Shipman: MPI support for multi-core architectures: optimized shared memory
// collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, shared_flat)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_SHARED_FLAT)
#define RAILPASS_COLLECTIVES_BROADCAST_SHARED_FLAT

#include "collectives/shared.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_shared_flat(const shape& s, const parameters&) {
  builder b(s, cell_bytes, 1);
  if (s.rank == 0)
    b.publish(buffer::output, {}, 0, {}, by_segments);
  else
    b.fetch(0, 0, buffer::output, {}, {}, by_segments);
  return b.finish();
}

inline double cost_shared_flat(const cost_query& q, const parameters&) {
  return shared_s(q, q.bytes, 0, 1, 0);
}

inline constexpr algorithm shared_flat{.op = collective::broadcast,
                                       .name = "shared_flat",
                                       .source = shared_source,
                                       .needs = shared_flat_needs,
                                       .build = build_shared_flat,
                                       .cost_s = cost_shared_flat};

}  // namespace railpass::collectives::broadcast

#endif

// SPDX-License-Identifier: BSL-1.0
//
// Shared memory, flat: every rank writes its input and adds up what the ranks below it have
// written. p = 8: r publishes, takes r-1's, and combines r-2's, down to 0's.
//
// Cost: p - 1 lines from cache to cache, and (p-2) n gamma on the last rank.
// Good when: messages are short or ranks few. Poor when: (p-2) n gamma is felt.
// Needs: memory that all ranks share; at most 8 ranks; rank order is kept.
// Source: Graham, Shipman: MPI support for multi-core architectures: optimized shared memory
// collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(exscan, shared_flat)
#elif !defined(RAILPASS_COLLECTIVES_EXSCAN_SHARED_FLAT)
#define RAILPASS_COLLECTIVES_EXSCAN_SHARED_FLAT

#include "collectives/shared.hpp"

namespace railpass::collectives::exscan {

inline schedule build_shared_flat(const shape& s, const parameters&) {
  builder b(s, cell_bytes, 1);
  const step_id given = b.publish(buffer::input, {}, 0, {}, by_segments);
  if (s.rank == 0) return b.finish();
  const step_id sum = b.fetch(s.rank - 1, 0, buffer::output, {}, {each(given)}, by_segments);
  combine_down(b, s.rank - 2, 0, 0, buffer::output, {}, sum);
  return b.finish();
}

inline double cost_shared_flat(const cost_query& q, const parameters&) {
  return shared_s(q, q.bytes, 1, 1, q.num_ranks - 2);
}

inline constexpr algorithm shared_flat{.op = collective::exscan,
                                       .name = "shared_flat",
                                       .source = shared_source,
                                       .needs = shared_flat_needs,
                                       .build = build_shared_flat,
                                       .cost_s = cost_shared_flat};

}  // namespace railpass::collectives::exscan

#endif

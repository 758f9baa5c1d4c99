// SPDX-License-Identifier: BSL-1.0
//
// Shared memory, flat: every other rank writes its input, and the root adds up what is there. p =
// 8: 1 to 7 publish, 0 combines 7's, 6's, down to 1's. In rank order the root writes its own, too,
// unless it is the last rank.
//
// Cost: p - 1 lines from cache to cache, and (p-1) n gamma at the root.
// Good when: messages are short or ranks few. Poor when: (p-1) n gamma is felt.
// Needs: memory that all ranks share; at most 8 ranks; rank order is kept.
// Source: Graham, Shipman: MPI support for multi-core architectures: optimized shared memory
// collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce, shared_flat)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SHARED_FLAT)
#define RAILPASS_COLLECTIVES_REDUCE_SHARED_FLAT

#include "collectives/shared.hpp"

namespace railpass::collectives::reduce {

inline schedule build_shared_flat(const shape& s, const parameters&) {
  builder b(s, cell_bytes, 1);
  const int last = s.num_ranks - 1, root = s.result_rank;
  if (s.rank != root) {
    b.publish(buffer::input, {}, 0, {}, by_segments);
    return b.finish();
  }
  if (s.commutative || root == last) {
    const step_id own = b.copy(buffer::input, buffer::output, {}, {}, by_segments);
    const step_id above = combine_down(b, last, root + 1, 0, buffer::output, {}, own);
    combine_down(b, root - 1, 0, 0, buffer::output, {}, above);
    return b.finish();
  }
  const step_id given = b.publish(buffer::input, {}, 0, {}, by_segments);
  const step_id sum = b.fetch(last, 0, buffer::output, {}, {each(given)}, by_segments);
  combine_down(b, last - 1, 0, 0, buffer::output, {}, sum);
  return b.finish();
}

inline double cost_shared_flat(const cost_query& q, const parameters&) {
  return shared_s(q, q.bytes, 0, 0, q.num_ranks - 1) + q.machine.copy.time_s(q.bytes);
}

inline constexpr algorithm shared_flat{.op = collective::reduce,
                                       .name = "shared_flat",
                                       .source = shared_source,
                                       .needs = shared_flat_needs,
                                       .build = build_shared_flat,
                                       .cost_s = cost_shared_flat};

}  // namespace railpass::collectives::reduce

#endif

// SPDX-License-Identifier: BSL-1.0
//
// Shared memory, flat: every rank writes its input and adds up what all have written. p = 8: each
// publishes, takes 7's and combines 6's, 5's, down to 0's, so that all get the same bits. Its own
// is among them: in place the input is where the sum goes.
//
// Cost: p - 1 lines from cache to cache, and (p-1) n gamma on every rank.
// Good when: messages are short. Poor when: (p-1) n gamma is felt.
// Needs: memory that all ranks share; at most 8 ranks; rank order is kept.
// Source: Graham, Shipman: MPI support for multi-core architectures: optimized shared memory
// collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_reduce, shared_flat)
#elif !defined(RAILPASS_COLLECTIVES_ALL_REDUCE_SHARED_FLAT)
#define RAILPASS_COLLECTIVES_ALL_REDUCE_SHARED_FLAT

#include "collectives/shared.hpp"

namespace railpass::collectives::all_reduce {

inline schedule build_shared_flat(const shape& s, const parameters&) {
  builder b(s, cell_bytes, 1);
  const int last = s.num_ranks - 1;
  const step_id given = b.publish(buffer::input, {}, 0, {}, by_segments);
  const step_id sum = s.rank == last
                          ? b.copy(buffer::input, buffer::output, {}, {each(given)}, by_segments)
                          : b.fetch(last, 0, buffer::output, {}, {each(given)}, by_segments);
  combine_down(b, last - 1, 0, 0, buffer::output, {}, sum);
  return b.finish();
}

inline double cost_shared_flat(const cost_query& q, const parameters&) {
  return shared_s(q, q.bytes, 1, 1, q.num_ranks - 1);
}

inline constexpr algorithm shared_flat{.op = collective::all_reduce,
                                       .name = "shared_flat",
                                       .source = shared_source,
                                       .needs = shared_flat_needs,
                                       .build = build_shared_flat,
                                       .cost_s = cost_shared_flat};

}  // namespace railpass::collectives::all_reduce

#endif

// SPDX-License-Identifier: BSL-1.0
//
// Shared memory, scattered: the root writes each block at a place of its own; every other rank
// reads one block there, writes it for the others, and reads theirs. So the root's cache serves
// every byte once or twice, not p - 1 times. p = 8: 0 publishes block k at place k; k fetches it
// and publishes it at place k, then fetches block 0 from 0 and the others from k + 1, k + 2, ...
//
// Cost: two lines from cache to cache and more, 2 n of copies.
// Good when: messages are long and ranks many. Poor when: messages are short against p steps.
// Needs: memory that all ranks share; at most 16 ranks.
// Source: Graham, Shipman: MPI support for multi-core architectures: optimized shared memory
// collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, shared_scatter_allgather)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_SHARED_SCATTER_ALLGATHER)
#define RAILPASS_COLLECTIVES_BROADCAST_SHARED_SCATTER_ALLGATHER

#include "collectives/shared.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_shared_scatter_allgather(const shape& s, const parameters&) {
  const int p = s.num_ranks, r = s.rank;
  builder b(s, cell_bytes, p);
  const auto block = [&](int k) { return block_of(k, p); };
  if (r == 0) {
    for (int k = 1; k <= p; ++k)
      b.publish(buffer::output, block(wrap(k, p)), wrap(k, p), {}, by_segments);
    return b.finish();
  }
  const step_id own = b.fetch(0, r, buffer::output, block(r), {}, by_segments);
  b.publish(buffer::output, block(r), r, {each(own)}, by_segments);
  for (int k = 1; k < p; ++k) {
    const int from = wrap(r + k, p);
    b.fetch(from, from, buffer::output, block(from), {}, by_segments);
  }
  return b.finish();
}

inline double cost_shared_scatter_allgather(const cost_query& q, const parameters&) {
  const double p = q.num_ranks;
  return shared_s(q, q.bytes / p, p, p, 0);
}

inline constexpr algorithm shared_scatter_allgather{.op = collective::broadcast,
                                                    .name = "shared_scatter_allgather",
                                                    .source = shared_source,
                                                    .needs = shared_blocks_needs,
                                                    .build = build_shared_scatter_allgather,
                                                    .cost_s = cost_shared_scatter_allgather};

}  // namespace railpass::collectives::broadcast

#endif

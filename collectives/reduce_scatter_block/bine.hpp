// SPDX-License-Identifier: BSL-1.0
//
// Bine butterfly: in every round two ranks exchange sums of the blocks that the other still works
// on, most blocks first. p = 8: 0-3 1-6 2-5 4-7 four blocks, 0-7 1-2 3-4 5-6 two, 0-1 2-3 4-5 6-7
// one. If p is odd, the last rank first hands its data to the rank before, and gets its block from
// it at the end.
//
// Cost: ceil(log2 p) alpha + (p-1)/p n (beta + gamma), n the bytes of all blocks; plus 2 alpha +
// n (beta + gamma) if p is odd.
// Good when: p is even, and leaving a group of neighbours is dear. Poor when: p is odd.
// Needs: a commutative operation.
// Source: De Sensi et al.: Bine trees: enhancing collective operations by optimizing communication
// locality, SC 2025, doi:10.1145/3712285.3759835.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce_scatter_block, bine)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SCATTER_BLOCK_BINE)
#define RAILPASS_COLLECTIVES_REDUCE_SCATTER_BLOCK_BINE

#include "collectives/bine.hpp"

namespace railpass::collectives::reduce_scatter_block {

inline schedule build_bine(const shape& s, const parameters&) {
  builder b(s);
  const bine_butterfly butterfly(s.num_ranks);
  const block_range own{.parts = s.num_ranks, .first = s.rank};
  if (butterfly.stands_aside(s.rank)) {
    b.send(buffer::input, {}, s.rank - 1);
    b.receive(buffer::output, own, s.rank - 1);
    return b.finish();
  }
  const bine_sum sum = bine_reduce_scatter(b, s);
  b.copy(buffer::scratch0, buffer::output, own, sum.ready);
  if (butterfly.stands_for_two(s.rank))
    b.send(buffer::scratch0, {.parts = s.num_ranks, .first = s.rank + 1}, s.rank + 1, sum.ready);
  return b.finish();
}

inline double cost_bine(const cost_query& q, const parameters&) {
  const double block = q.bytes / q.num_ranks;
  return q.machine.copy.time_s(block) + bine_rounds_s(q, 1) + bine_aside_s(q, block) +
         bine_aside_s(q, q.bytes, 1);
}

inline constexpr algorithm bine{.op = collective::reduce_scatter_block,
                                .name = "bine",
                                .source = bine_source,
                                .needs = {.commutative = true},
                                .scratch = {.messages = 2},
                                .build = build_bine,
                                .cost_s = cost_bine};

}  // namespace railpass::collectives::reduce_scatter_block

#endif

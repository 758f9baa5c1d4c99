// SPDX-License-Identifier: BSL-1.0
//
// Pairwise: in round i each rank sends its part of a block to the rank i above it, and receives
// from the rank i below it a part of its own block, which it adds at once. Parts of lower ranks
// come from the nearest one down, then those of higher ranks from the farthest one down, so each
// goes to the left of one of two sums. p = 8: seven rounds r -> r+i of one block.
//
// Cost: (p-1) alpha + (p-1)/p n (beta + gamma), n the bytes of all blocks.
// Good when: n beta dominates and the operation does not commute. Poor when: p alpha dominates.
// Needs: nothing; rank order is kept.
// Source: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
// MPICH, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce_scatter_block, pairwise)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SCATTER_BLOCK_PAIRWISE)
#define RAILPASS_COLLECTIVES_REDUCE_SCATTER_BLOCK_PAIRWISE

#include "collectives/blocks.hpp"

namespace railpass::collectives::reduce_scatter_block {

inline schedule build_pairwise(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  const block_range own{.parts = p, .first = r};
  const buffer lower = r < p - 1 ? buffer::scratch2 : buffer::output;
  step_id low = b.copy(buffer::input, lower, own), high = no_step;
  b.send(buffer::input, {.parts = p, .first = wrap(r + 1, p), .stride = 1}, wrap(r + 1, p), {},
         {.rounds = p - 1, .peer_stride = 1, .window = 1});
  std::array<step_id, 2> used{no_step, no_step};  // scratch0 and scratch1, by turns
  for (int i = 1; i < p; ++i) {
    const int from = wrap(r - i, p);
    if (i == r + 1) {
      high = b.receive(buffer::output, own, from);
      continue;
    }
    step_id& last = used[std::size_t(i % 2)];
    step_id& sum = i <= r ? low : high;
    const buffer part = i % 2 == 0 ? buffer::scratch0 : buffer::scratch1;
    const step_id arrived = b.receive(part, own, from, {whole(last)});
    last = sum = b.reduce(part, i <= r ? lower : buffer::output, own, {whole(arrived), whole(sum)});
  }
  if (r < p - 1) b.reduce(lower, buffer::output, own, {whole(low), whole(high)});
  return b.finish();
}

inline double cost_pairwise(const cost_query& q, const parameters&) {
  const double block = q.bytes / q.num_ranks;
  const routes r(q, block);
  const double reduce_s = q.machine.reduce.time_s(block);
  const double others = q.num_ranks - 1;
  const double to_far = q.num_ranks - r.per_node;
  const hop& h = to_far > 0 ? r.far : r.near;
  const double messages = to_far > 0 ? r.per_node * to_far : others;
  // A large message is over when it has arrived; then only does the next one begin.
  const bool waits = block > q.slowest_link().eager_limit_bytes;
  return std::max({(messages - 1) * h.busy_s, (others - 1) * h.crowded_stage_s(reduce_s),
                   waits ? (others - 1) * (h.one_way_s + reduce_s) : 0.0}) +
         h.one_way_s + reduce_s + q.machine.copy.time_s(block);
}

inline constexpr algorithm pairwise{.op = collective::reduce_scatter_block,
                                    .name = "pairwise",
                                    .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
                                    .needs = {.max_ranks = 256},
                                    .scratch = {.blocks = 3},
                                    .build = build_pairwise,
                                    .cost_s = cost_pairwise};

}  // namespace railpass::collectives::reduce_scatter_block

#endif

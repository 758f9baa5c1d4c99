// SPDX-License-Identifier: BSL-1.0
//
// Ring: block b starts at rank b+1 and goes around; each rank adds its part, and after p-1 rounds
// block r is complete at rank r. p = 8: seven rounds r -> r+1 of one block.
//
// Cost: (p-1) alpha + (p-1)/p n (beta + gamma), n the bytes of all blocks.
// Good when: n beta dominates. Poor when: p alpha dominates.
// Needs: a commutative operation (each block is summed beginning at another rank).
// Source: Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations,
// JPDC 69(2), 2009, doi:10.1016/j.jpdc.2008.09.002 (its first half).
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce_scatter_block, ring)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SCATTER_BLOCK_RING)
#define RAILPASS_COLLECTIVES_REDUCE_SCATTER_BLOCK_RING

#include "collectives/parts.hpp"

namespace railpass::collectives::reduce_scatter_block {

inline schedule build_ring(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  const int right = wrap(r + 1, p), left = wrap(r - 1, p);
  const block_range parts{.parts = p, .first = wrap(r - 2, p), .stride = -1};
  const loop rounds{.rounds = p - 1};
  b.send(buffer::input, {.parts = p, .first = left}, right);
  const step_id partial = b.receive(buffer::scratch0, parts, left, {}, rounds);
  const step_id sum = b.reduce(buffer::input, buffer::scratch0, parts, {each(partial)}, rounds);
  b.send(buffer::scratch0, parts, right, {each(sum)}, {.rounds = p - 2});
  b.copy(buffer::scratch0, buffer::output, {.parts = p, .first = r}, {whole(sum)});
  return b.finish();
}

inline double cost_ring(const cost_query& q, const parameters&) {
  const double block = q.bytes / q.num_ranks;
  const routes r(q, block);
  const int rounds = q.num_ranks - 1;
  const double reduce_s = q.machine.reduce.time_s(block);
  const double link_s = (rounds - 1) * r.far.stage_s(1, 1, reduce_s) + r.far.one_way_s + reduce_s;
  return std::max(r.way_s(rounds) + rounds * reduce_s, link_s) + q.machine.copy.time_s(block);
}

inline constexpr algorithm ring{.op = collective::reduce_scatter_block,
                                .name = "ring",
                                .source = "Patarasuk and Yuan 2009, doi:10.1016/j.jpdc.2008.09.002",
                                .needs = {.commutative = true},
                                .scratch = {.messages = 1},
                                .build = build_ring,
                                .cost_s = cost_ring};

}  // namespace railpass::collectives::reduce_scatter_block

#endif

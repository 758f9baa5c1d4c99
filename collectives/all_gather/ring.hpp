// SPDX-License-Identifier: BSL-1.0
//
// Ring: in each of p-1 rounds every rank passes the block it got last to its right neighbour, first
// its own. p = 8: seven rounds r -> r+1 of one block.
//
// Cost: (p-1) alpha + (p-1)/p n beta, n the bytes of all blocks.
// Good when: n beta dominates. Poor when: p alpha dominates.
// Needs: nothing.
// Source: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
// MPICH, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gather, ring)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHER_RING)
#define RAILPASS_COLLECTIVES_ALL_GATHER_RING

#include "collectives/parts.hpp"

namespace railpass::collectives::all_gather {

inline schedule build_ring(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  const int right = wrap(r + 1, p), left = wrap(r - 1, p);
  const block_range own{.parts = p, .first = r};
  const block_range others{.parts = p, .first = left, .stride = -1};
  b.send(buffer::input, own, right);
  b.copy(buffer::input, buffer::output, own);
  const step_id arrived = b.receive(buffer::output, others, left, {}, {.rounds = p - 1});
  b.send(buffer::output, others, right, {each(arrived)}, {.rounds = p - 2});
  return b.finish();
}

inline double cost_ring(const cost_query& q, const parameters&) {
  const routes r(q, q.bytes / q.num_ranks);
  const int rounds = q.num_ranks - 1;
  // A block's way around the ring, or all blocks over one link.
  return std::max(r.way_s(rounds), (rounds - 1) * r.far.stage_s(1, 1) + r.far.one_way_s) +
         q.machine.copy.time_s(q.bytes / q.num_ranks);
}

inline constexpr algorithm ring{.op = collective::all_gather,
                                .name = "ring",
                                .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
                                .needs = {},
                                .build = build_ring,
                                .cost_s = cost_ring};

}  // namespace railpass::collectives::all_gather

#endif

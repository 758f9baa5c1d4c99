// SPDX-License-Identifier: BSL-1.0
//
// Scatter and ring all-gather: the message is cut in p blocks. A binomial scatter leaves each rank
// with its own block and those of the ranks below it; then p-1 rounds pass blocks on around a ring.
// A rank is not sent what the scatter gave it already.
// p = 8: 0->4, then 0->2 4->6, then 0->1 2->3 4->5 6->7 with half, quarter, eighth of the message;
// then up to seven rounds r -> r+1 with one block each.
//
// Cost: (log2 p + p - 1) alpha + 2 (p-1)/p n beta.
// Good when: messages are long and p is small. Poor when: p alpha dominates; a pipeline needs half
// the bytes on each link.
// Needs: nothing.
// Source: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
// MPICH, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521; without the redundant blocks: Zhou,
// Marjanovic, Niethammer, Gracia: A bandwidth-saving optimization for MPI broadcast collective
// operation, 2016, doi:10.48550/arXiv.1603.06809.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, scatter_allgather_ring)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_SCATTER_ALLGATHER_RING)
#define RAILPASS_COLLECTIVES_BROADCAST_SCATTER_ALLGATHER_RING

#include "collectives/parts.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_scatter_allgather_ring(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, v = s.rank;
  const int right = wrap(v + 1, p), left = wrap(v - 1, p);
  const step_id scattered = binomial_scatter(b, s);
  // Round i brings block v-1-i, until only blocks are missing that the scatter brought. It passes
  // on block v-i, the one of the round before or, beyond the last, one of the scatter.
  const step_id passed = b.receive(buffer::output, {.parts = p, .first = left, .stride = -1}, left,
                                   {}, {.rounds = p - scattered_blocks(v, p)});
  b.send(buffer::output, {.parts = p, .first = v, .stride = -1}, right,
         {whole(scattered), each(passed, 1)}, {.rounds = p - scattered_blocks(right, p)});
  return b.finish();
}

inline double cost_scatter_allgather_ring(const cost_query& q, const parameters&) {
  const routes r(q, q.bytes / q.num_ranks);
  const int rounds = q.num_ranks - 1;
  // A block's way around the ring, or all blocks over one link.
  const double link_s = (rounds - 1) * r.far.stage_s(1, 1) + r.far.one_way_s;
  return binomial_scatter_s(q) + std::max(r.shifts_s(rounds), link_s);
}

inline constexpr algorithm scatter_allgather_ring{
    .op = collective::broadcast,
    .name = "scatter_allgather_ring",
    .source =
        "Thakur et al. 2005, doi:10.1177/1094342005051521; Zhou et al. 2016, "
        "doi:10.48550/arXiv.1603.06809",
    .needs = {},
    .build = build_scatter_allgather_ring,
    .cost_s = cost_scatter_allgather_ring};

}  // namespace railpass::collectives::broadcast

#endif

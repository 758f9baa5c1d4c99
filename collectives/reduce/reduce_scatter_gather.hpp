// SPDX-License-Identifier: BSL-1.0
//
// Reduce-scatter and gather (Rabenseifner): the reduce-scatter halves what a rank holds in every
// round: it exchanges halves with its partner and reduces the half it keeps. Then a binomial gather
// brings the blocks to the root by the same partners. p = 8: 0-1 2-3 4-5 6-7 with 1/2 of the
// message, 0-2 1-3 4-6 5-7 with 1/4, 0-4 1-5 2-6 3-7 with 1/8; then 4->0 5->1 6->2 7->3 with 1/8,
// 2->0 3->1 with 1/4, 1->0 with 1/2. If p is not a power of two, some odd ranks first hand their
// data to their neighbour.
//
// Cost: 2 log2 p alpha + 2 (p-1)/p n beta + (p-1)/p n gamma, plus alpha + n beta + n gamma when
// folded. Good when: messages are of medium length or long and p is a power of two. Poor when:
// messages are very short; a pipeline needs half the bytes on each link. Needs: nothing; rank order
// is kept, at the price of a copy if the operation does not commute. Source: Rabenseifner:
// Optimization of collective reduction operations, ICCS 2004, doi:10.1007/978-3-540-24685-5_1.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce, reduce_scatter_gather)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_REDUCE_SCATTER_GATHER)
#define RAILPASS_COLLECTIVES_REDUCE_REDUCE_SCATTER_GATHER

#include "collectives/parts.hpp"

namespace railpass::collectives::reduce {

inline schedule build_reduce_scatter_gather(const shape& s, const parameters&) {
  builder b(s);
  const folding fold(s.num_ranks, folding(s.num_ranks).power, 0);
  if (fold.stands_aside(s.rank)) {
    b.send(buffer::input, {}, s.rank - 1);
    return b.finish();
  }
  const buffer result = s.rank == 0 ? buffer::output : buffer::scratch2;
  partial_result partial(b, !s.commutative, result);
  if (fold.stands_for_two(s.rank)) partial.receive_and_reduce({}, s.rank + 1, false);
  const int position = fold.position(s.rank);
  block_range mine =
      partial.halve(fold, position, halving_bits(fold.power, halving_order::near_first));
  std::vector<after> held{whole(partial.to_output(mine))}, free = partial.readers_of_output();
  free.push_back(held[0]);
  for (int bit = fold.power / 2; bit > 0; bit /= 2) {
    const int peer = fold.rank_at(position ^ bit);
    if ((position & bit) != 0) {
      b.send(result, mine, peer, held);
      break;
    }
    block_range theirs = mine;
    theirs.first += mine.count;
    held.push_back(whole(b.receive(result, theirs, peer, free)));
    mine.count *= 2;
  }
  return b.finish();
}

inline double cost_reduce_scatter_gather(const cost_query& q, const parameters&) {
  const folding fold(q.num_ranks);
  double total_s = 0, part = q.bytes;
  for (int bit = 1; bit < fold.power; bit *= 2) {
    part /= 2;
    const routes r(q, part);
    total_s += r.exchange_s(bit) + q.machine.reduce.time_s(part) + r.to(bit).one_way_s;
  }
  total_s += q.machine.copy.time_s(part);
  if (fold.folded > 0)
    total_s += routes(q, q.bytes).to(1).one_way_s + q.machine.reduce.time_s(q.bytes);
  return total_s;
}

inline constexpr algorithm reduce_scatter_gather{
    .op = collective::reduce,
    .name = "reduce_scatter_gather",
    .source = "Rabenseifner 2004, doi:10.1007/978-3-540-24685-5_1",
    .needs = {},
    .scratch = {.messages = 3},
    .build = build_reduce_scatter_gather,
    .cost_s = cost_reduce_scatter_gather};

}  // namespace railpass::collectives::reduce

#endif

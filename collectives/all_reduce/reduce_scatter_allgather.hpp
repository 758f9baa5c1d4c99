// SPDX-License-Identifier: BSL-1.0
//
// Reduce-scatter and all-gather (Rabenseifner): the reduce-scatter halves what a rank holds in
// every round: it exchanges halves with its partner and reduces the half it keeps. The all-gather
// goes back by the same partners and doubles it again.
// p = 8: 0-1 2-3 4-5 6-7 with 1/2 of the message, 0-2 1-3 4-6 5-7 with 1/4, 0-4 1-5 2-6 3-7 with
// 1/8; then the same in reverse with complete blocks. If p is not a power of two, some even ranks
// first hand their data to their neighbour and get the result from it at the end.
//
// Cost: 2 log2 p alpha + 2 (p-1)/p n beta + (p-1)/p n gamma, plus 2 (alpha + n beta) + n gamma when
// folded.
// Good when: n beta dominates and p is a power of two. Poor when: messages are very short.
// Needs: nothing; rank order is kept, at the price of a copy if the operation does not commute.
// Source: Rabenseifner: Optimization of collective reduction operations, ICCS 2004,
// doi:10.1007/978-3-540-24685-5_1.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_reduce, reduce_scatter_allgather)
#elif !defined(RAILPASS_COLLECTIVES_ALL_REDUCE_REDUCE_SCATTER_ALLGATHER)
#define RAILPASS_COLLECTIVES_ALL_REDUCE_REDUCE_SCATTER_ALLGATHER

#include "collectives/parts.hpp"

namespace railpass::collectives::all_reduce {

inline schedule build_halving_doubling(const shape& s, halving_order order) {
  builder b(s);
  const folding fold(s.num_ranks);
  if (fold.stands_aside(s.rank)) {
    const step_id handed = b.send(buffer::input, {}, s.rank + 1);
    b.receive(buffer::output, {}, s.rank + 1, {whole(handed)});
    return b.finish();
  }
  // Every block is reduced to its final value by one rank only, so the order of operands matters
  // only where the operation does not commute.
  partial_result partial(b, !s.commutative);
  if (fold.stands_for_two(s.rank)) partial.receive_and_reduce({}, s.rank - 1, true);
  const int position = fold.position(s.rank);
  std::vector<int> bits = halving_bits(fold.power, order);
  block_range mine = partial.halve(fold, position, bits);

  const step_id reduced = partial.to_output(mine);
  std::vector<after> held{whole(reduced)}, free = partial.readers_of_output();
  free.push_back(whole(reduced));
  std::reverse(bits.begin(), bits.end());
  for (const int bit : bits) {
    const int peer = fold.rank_at(position ^ bit);
    block_range theirs = mine;
    theirs.first += (position & bit) == 0 ? mine.count : -mine.count;
    b.send(buffer::output, mine, peer, held);
    held.push_back(whole(b.receive(buffer::output, theirs, peer, free)));
    mine.first = std::min(mine.first, theirs.first);
    mine.count *= 2;
  }
  if (fold.stands_for_two(s.rank)) b.send(buffer::output, {}, s.rank - 1, held);
  return b.finish();
}

inline double halving_doubling_s(const cost_query& q, halving_order order) {
  const folding fold(q.num_ranks);
  double total_s = 0, part = q.bytes;
  for (const int bit : halving_bits(fold.power, order)) {
    part /= 2;
    total_s += 2 * routes(q, part).exchange_s(bit) + q.machine.reduce.time_s(part);
  }
  total_s += q.machine.copy.time_s(part);
  if (fold.folded > 0)
    total_s += 2 * routes(q, q.bytes).to(1).one_way_s + q.machine.reduce.time_s(q.bytes);
  return total_s;
}

inline schedule build_reduce_scatter_allgather(const shape& s, const parameters&) {
  return build_halving_doubling(s, halving_order::near_first);
}

inline double cost_reduce_scatter_allgather(const cost_query& q, const parameters&) {
  return halving_doubling_s(q, halving_order::near_first);
}

inline constexpr algorithm reduce_scatter_allgather{
    .op = collective::all_reduce,
    .name = "reduce_scatter_allgather",
    .source = "Rabenseifner 2004, doi:10.1007/978-3-540-24685-5_1",
    .needs = {},
    .scratch = {.messages = 2},
    .build = build_reduce_scatter_allgather,
    .cost_s = cost_reduce_scatter_allgather};

}  // namespace railpass::collectives::all_reduce

#endif

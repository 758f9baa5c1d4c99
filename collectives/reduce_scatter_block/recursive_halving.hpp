// SPDX-License-Identifier: BSL-1.0
//
// Recursive halving: in each round a rank exchanges halves of the blocks it still works on with
// its partner, the farthest first, and adds up the half it keeps. If p is not a power of two,
// some even ranks first hand their data to their neighbour and get their block from it at the
// end. p = 8: 0-4 1-5 2-6 3-7 four blocks, 0-2 1-3 4-6 5-7 two, 0-1 2-3 4-5 6-7 one.
//
// Cost: log2 p alpha + (p-1)/p n (beta + gamma), plus 2 alpha + n (beta + gamma) when folded.
// Good when: always, on a power of two of ranks. Poor when: p is not a power of two.
// Needs: a commutative operation.
// Source: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
// MPICH, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce_scatter_block, recursive_halving)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SCATTER_BLOCK_RECURSIVE_HALVING)
#define RAILPASS_COLLECTIVES_REDUCE_SCATTER_BLOCK_RECURSIVE_HALVING

#include "collectives/blocks.hpp"

namespace railpass::collectives::reduce_scatter_block {

inline schedule build_recursive_halving(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  const folding fold(p);
  const block_range own{.parts = p, .first = r};
  if (fold.stands_aside(r)) {
    b.send(buffer::input, {}, r + 1);
    b.receive(buffer::output, own, r + 1);
    return b.finish();
  }
  // The sum is in turn in scratch0 and scratch1: it is added to what arrives.
  buffer at = buffer::input, arrival = buffer::scratch0;
  step_id ready = no_step;
  std::vector<after> busy;  // until then the arrival's memory is still used
  const auto add_part_of = [&](int peer, const block_range& kept, step_id sent) {
    const step_id arrived = b.receive(arrival, kept, peer, busy);
    ready = b.reduce(at, arrival, kept, {whole(arrived), whole(ready)});
    busy = {whole(sent), whole(ready)};
    at = arrival;
    arrival = at == buffer::scratch0 ? buffer::scratch1 : buffer::scratch0;
  };
  if (fold.stands_for_two(r)) add_part_of(r - 1, {}, no_step);
  // Blocks of the ranks that positions stand for.
  const auto blocks_of = [&](int position, int positions) {
    const auto begin = [&](int k) { return k < fold.folded ? 2 * k : k + fold.folded; };
    return block_range{.parts = p,
                       .first = begin(position),
                       .count = begin(position + positions) - begin(position)};
  };
  const int position = fold.position(r);
  for (int bit = fold.power / 2; bit > 0; bit /= 2) {
    const int peer = fold.rank_at(position ^ bit), mine = position & -bit;
    const step_id sent = b.send(at, blocks_of(mine ^ bit, bit), peer, {whole(ready)});
    add_part_of(peer, blocks_of(mine, bit), sent);
  }
  b.copy(at, buffer::output, own, {whole(ready)});
  if (fold.stands_for_two(r)) b.send(at, {.parts = p, .first = r - 1}, r - 1, {whole(ready)});
  return b.finish();
}

inline double cost_recursive_halving(const cost_query& q, const parameters&) {
  const folding fold(q.num_ranks);
  const double block = q.bytes / q.num_ranks;
  double total_s = q.machine.copy.time_s(block);
  for (int bit = 1; bit < fold.power; bit *= 2) {
    // Positions that stand for two ranks come first.
    const double blocks = bit + std::min(bit, fold.folded);
    total_s += routes(q, blocks * block).exchange_s(bit) + q.machine.reduce.time_s(blocks * block);
  }
  if (fold.folded > 0)
    total_s += routes(q, q.bytes).to(1).one_way_s + q.machine.reduce.time_s(q.bytes) +
               routes(q, block).to(1).one_way_s;
  return total_s;
}

inline constexpr algorithm recursive_halving{
    .op = collective::reduce_scatter_block,
    .name = "recursive_halving",
    .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
    .needs = {.commutative = true},
    .scratch = {.messages = 2},
    .build = build_recursive_halving,
    .cost_s = cost_recursive_halving};

}  // namespace railpass::collectives::reduce_scatter_block

#endif

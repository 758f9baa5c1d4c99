// SPDX-License-Identifier: BSL-1.0
//
// Neighbour exchange: ranks 2i and 2i+1 exchange their blocks; from then on each rank exchanges
// a pair of blocks with its other neighbour and with this one in turn, always the pair it got
// last. p = 8: 0-1 2-3 4-5 6-7 one block, then 1-2 3-4 5-6 7-0, 0-1 2-3 4-5 6-7 and 1-2 3-4 5-6
// 7-0 two.
//
// Cost: p/2 alpha + (p-1)/p n beta, n the bytes of all blocks.
// Good when: n beta dominates: half the rounds of a ring, and partners are neighbours. Poor
// when: p alpha dominates.
// Needs: an even number of ranks.
// Source: Chen, Zhang, Zhang, Yuan: Performance evaluation of allgather algorithms on terascale
// Linux cluster with fast Ethernet, HPC Asia 2005, doi:10.1109/HPCASIA.2005.75.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gather, neighbour_exchange)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHER_NEIGHBOUR_EXCHANGE)
#define RAILPASS_COLLECTIVES_ALL_GATHER_NEIGHBOUR_EXCHANGE

#include "collectives/blocks.hpp"

namespace railpass::collectives::all_gather {

inline schedule build_neighbour_exchange(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank, pair = r & ~1;
  // Pairs from the partner come in one order around the ring, those from the other neighbour in
  // the opposite one.
  const int partner = r ^ 1, step = r % 2 == 0 ? -2 : 2, other = wrap(r + step / 2, p);
  const int from_other = p / 4, from_partner = p / 2 - 1 - from_other;
  const auto pairs = [&](int stride) {
    return block_range{.parts = p, .first = wrap(pair + stride, p), .stride = stride, .count = 2};
  };
  const block_range own{.parts = p, .first = r};
  const step_id copied = b.copy(buffer::input, buffer::output, own);
  b.send(buffer::input, own, partner);
  const step_id whole_pair = b.receive(buffer::output, {.parts = p, .first = partner}, partner);
  const step_id by_other =
      b.receive(buffer::output, pairs(step), other, {}, {.rounds = from_other});
  const step_id by_partner =
      b.receive(buffer::output, pairs(-step), partner, {}, {.rounds = from_partner});
  b.send(buffer::output, {.parts = p, .first = pair, .count = 2}, other,
         {whole(copied), whole(whole_pair)}, {.rounds = std::min(1, from_other)});
  b.send(buffer::output, pairs(step), partner, {each(by_other)}, {.rounds = from_partner});
  b.send(buffer::output, pairs(-step), other, {each(by_partner)}, {.rounds = from_other - 1});
  return b.finish();
}

inline double cost_neighbour_exchange(const cost_query& q, const parameters&) {
  const double block = q.bytes / q.num_ranks;
  const routes r(q, 2 * block);
  const int rounds = q.num_ranks / 2 - 1;
  // The ranks at the ends of a node go out of it with every other message.
  const int between_nodes = r.per_node == 1 ? rounds : std::min(rounds, q.num_ranks / 4);
  return routes(q, block).exchange_s(1) + q.machine.copy.time_s(block) +
         between_nodes * r.far.exchange_s + (rounds - between_nodes) * r.near.exchange_s;
}

inline constexpr algorithm neighbour_exchange{
    .op = collective::all_gather,
    .name = "neighbour_exchange",
    .source = "Chen et al. 2005, doi:10.1109/HPCASIA.2005.75",
    .needs = {.even_ranks = true},
    .spans_blocks = true,
    .build = build_neighbour_exchange,
    .cost_s = cost_neighbour_exchange};

}  // namespace railpass::collectives::all_gather

#endif

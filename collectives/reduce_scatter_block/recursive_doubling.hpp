// SPDX-License-Identifier: BSL-1.0
//
// Recursive doubling: as an all_reduce each rank exchanges its whole partial result with the
// rank whose number differs in bit i, and both combine the two, the lower ranks' part on the
// left; then it takes its block. p = 8: 0-1 2-3 4-5 6-7, then 0-2 1-3 4-6 5-7, then 0-4 1-5 2-6
// 3-7. If p is not a power of two, some even ranks first hand their data to their neighbour and
// get their block from it at the end.
//
// Cost: log2 p (alpha + n beta + n gamma), n the bytes of all blocks.
// Good when: messages are short and the operation does not commute. Poor when: n beta dominates.
// Needs: nothing; rank order is kept.
// Source: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
// MPICH, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce_scatter_block, recursive_doubling)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SCATTER_BLOCK_RECURSIVE_DOUBLING)
#define RAILPASS_COLLECTIVES_REDUCE_SCATTER_BLOCK_RECURSIVE_DOUBLING

#include "collectives/blocks.hpp"

namespace railpass::collectives::reduce_scatter_block {

inline schedule build_recursive_doubling(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  const folding fold(p);
  const block_range own{.parts = p, .first = r};
  if (fold.stands_aside(r)) {
    b.send(buffer::input, {}, r + 1);
    b.receive(buffer::output, own, r + 1);
    return b.finish();
  }
  buffer at = buffer::scratch0, arrival = buffer::scratch1;
  step_id ready = b.copy(buffer::input, at, {});
  std::vector<after> busy;  // until then the arrival's memory is still used
  const auto add_part_of = [&](int peer, step_id sent) {
    const step_id arrived = b.receive(arrival, {}, peer, busy);
    if (peer < r) {
      ready = b.reduce(arrival, at, {}, {whole(arrived), whole(ready), whole(sent)});
      busy = {whole(ready)};
    } else {
      ready = b.reduce(at, arrival, {}, {whole(arrived), whole(ready)});
      busy = {whole(ready), whole(sent)};
      std::swap(at, arrival);
    }
  };
  if (fold.stands_for_two(r)) add_part_of(r - 1, no_step);
  for (int bit = 1; bit < fold.power; bit *= 2) {
    const int peer = fold.rank_at(fold.position(r) ^ bit);
    add_part_of(peer, b.send(at, {}, peer, {whole(ready)}));
  }
  b.copy(at, buffer::output, own, {whole(ready)});
  if (fold.stands_for_two(r)) b.send(at, {.parts = p, .first = r - 1}, r - 1, {whole(ready)});
  return b.finish();
}

inline double cost_recursive_doubling(const cost_query& q, const parameters&) {
  const folding fold(q.num_ranks);
  const double block = q.bytes / q.num_ranks;
  const routes r(q, q.bytes);
  const double reduce_s = q.machine.reduce.time_s(q.bytes);
  double total_s = q.machine.copy.time_s(q.bytes) + q.machine.copy.time_s(block);
  for (int bit = 1; bit < fold.power; bit *= 2) total_s += r.exchange_s(bit) + reduce_s;
  if (fold.folded > 0) total_s += r.to(1).one_way_s + reduce_s + routes(q, block).to(1).one_way_s;
  return total_s;
}

inline constexpr algorithm recursive_doubling{
    .op = collective::reduce_scatter_block,
    .name = "recursive_doubling",
    .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
    .needs = {},
    .scratch = {.messages = 2},
    .build = build_recursive_doubling,
    .cost_s = cost_recursive_doubling};

}  // namespace railpass::collectives::reduce_scatter_block

#endif

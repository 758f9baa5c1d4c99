// SPDX-License-Identifier: BSL-1.0
//
// Recursive doubling: in round i each rank exchanges its whole partial result with the rank whose
// number differs in bit i, and both combine the two alike, the lower ranks' part on the left.
// p = 8: 0-1 2-3 4-5 6-7, then 0-2 1-3 4-6 5-7, then 0-4 1-5 2-6 3-7. If p is not a power of two,
// some even ranks first hand their data to their neighbour and get the result from it at the end.
//
// Cost: log2 p (alpha + n beta + n gamma), plus 2 (alpha + n beta) + n gamma when folded.
// Good when: messages are short. Poor when: n beta dominates (log2 p times the message).
// Needs: nothing; rank order is kept.
// Source: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
// MPICH, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_reduce, recursive_doubling)
#elif !defined(RAILPASS_COLLECTIVES_ALL_REDUCE_RECURSIVE_DOUBLING)
#define RAILPASS_COLLECTIVES_ALL_REDUCE_RECURSIVE_DOUBLING

#include "collectives/parts.hpp"

namespace railpass::collectives::all_reduce {

inline schedule build_recursive_doubling(const shape& s, const parameters&) {
  builder b(s);
  const folding fold(s.num_ranks);
  if (fold.stands_aside(s.rank)) {
    const step_id handed = b.send(buffer::input, {}, s.rank + 1);
    b.receive(buffer::output, {}, s.rank + 1, {whole(handed)});
    return b.finish();
  }
  // Whichever rank reduces, the operands are in rank order: all ranks get bitwise the same value.
  partial_result partial(b, true);
  if (fold.stands_for_two(s.rank)) partial.receive_and_reduce({}, s.rank - 1, true);
  const int position = fold.position(s.rank);
  for (int bit = 1; bit < fold.power; bit *= 2) {
    const int peer = fold.rank_at(position ^ bit);
    partial.send({}, peer);
    partial.receive_and_reduce({}, peer, peer < s.rank);
  }
  if (fold.stands_for_two(s.rank)) partial.send({}, s.rank - 1);
  partial.to_output({});
  return b.finish();
}

inline double cost_recursive_doubling(const cost_query& q, const parameters&) {
  const folding fold(q.num_ranks);
  const routes r(q, q.bytes);
  const hop& neighbour = r.to(1);
  double total_s =
      fold.rounds() * q.machine.reduce.time_s(q.bytes) + q.machine.copy.time_s(q.bytes);
  for (int bit = 1; bit < fold.power; bit *= 2) total_s += r.exchange_s(bit);
  if (fold.folded > 0) {
    total_s += 2 * neighbour.one_way_s + q.machine.reduce.time_s(q.bytes);
    // A rank that stands for two has its partners' data in time. Only if more than half of the
    // ranks do must it wait for one that was as late as itself.
    if (2 * fold.folded <= fold.power) total_s -= neighbour.one_way_s - neighbour.busy_s;
  }
  return total_s;
}

inline constexpr algorithm recursive_doubling{
    .op = collective::all_reduce,
    .name = "recursive_doubling",
    .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
    .needs = {},
    .scratch = {.messages = 2},
    .build = build_recursive_doubling,
    .cost_s = cost_recursive_doubling};

}  // namespace railpass::collectives::all_reduce

#endif

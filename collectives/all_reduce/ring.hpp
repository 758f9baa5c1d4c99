// SPDX-License-Identifier: BSL-1.0
//
// Ring: the message is cut in p blocks. In p-1 rounds of a reduce-scatter each rank passes a
// partial block to its right neighbour, which adds its own part; after that rank r holds block
// r+1 complete. p-1 rounds of an all-gather pass the complete blocks on.
// p = 8: seven rounds r -> r+1 with reduction, seven without; every link carries 2 n (p-1)/p.
//
// Cost: 2 (p-1) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma.
// Good when: n beta dominates. Poor when: p alpha dominates.
// Needs: a commutative operation (each block is summed beginning at another rank).
// Source: Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations,
// JPDC 69(2), 2009, doi:10.1016/j.jpdc.2008.09.002.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_reduce, ring)
#elif !defined(RAILPASS_COLLECTIVES_ALL_REDUCE_RING)
#define RAILPASS_COLLECTIVES_ALL_REDUCE_RING

#include "collectives/algorithm.hpp"

namespace railpass::collectives::all_reduce {

inline schedule build_ring(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  const int right = wrap(r + 1, p), left = wrap(r - 1, p);
  const step_id mine = b.copy(buffer::input, buffer::output, {});

  // Round i: send block r-i, receive and reduce block r-1-i. What arrives is the sum over the
  // ranks before this one, so it is the left operand.
  const auto block = [&](int first) {
    return block_range{.parts = p, .first = first, .stride = -1};
  };
  const loop rounds{.rounds = p - 1};
  const step_id seed = b.send(buffer::output, {.parts = p, .first = r}, right, {whole(mine)});
  const step_id partial = b.receive(buffer::scratch0, block(wrap(r - 1, p)), left, {}, rounds);
  const step_id sum = b.reduce(buffer::scratch0, buffer::output, block(wrap(r - 1, p)),
                               {whole(mine), each(partial)}, rounds);
  const step_id pass =
      b.send(buffer::output, block(wrap(r - 1, p)), right, {each(sum)}, {.rounds = p - 1});
  // `pass` sends the sum of round i in round i + 1; its last round sends this rank's complete
  // block, the first message of the all-gather.
  const step_id complete = b.receive(buffer::output, block(wrap(r, p)), left,
                                     {whole(sum), whole(seed), whole(pass)}, {.rounds = p - 1});
  b.send(buffer::output, block(wrap(r, p)), right, {each(complete)}, {.rounds = p - 2});
  return b.finish();
}

inline double cost_ring(const cost_query& q, const parameters&) {
  const link_model& link = q.slowest_link();
  const double block = q.bytes / q.num_ranks, rounds = q.num_ranks - 1;
  return q.machine.copy.time_s(q.bytes) + 2 * rounds * link.one_way_s(block) +
         rounds * q.machine.reduce.time_s(block);
}

inline constexpr algorithm ring{.op = collective::all_reduce,
                                .name = "ring",
                                .source = "Patarasuk and Yuan 2009, doi:10.1016/j.jpdc.2008.09.002",
                                .needs = {.commutative = true, .min_units_per_rank = 1},
                                .build = build_ring,
                                .cost_s = cost_ring};

}  // namespace railpass::collectives::all_reduce

#endif

// SPDX-License-Identifier: BSL-1.0
//
// Ring and gather: the message is cut in p blocks. In p-1 rounds of a reduce-scatter each rank
// passes a partial block to its right neighbour, which adds its own part; after that rank r holds
// block r complete and sends it to the root. p = 8: seven rounds r -> r+1 of one block, then 1->0,
// 2->0, ..., 7->0 with a block each.
//
// Cost: p alpha + 2 (p-1)/p n beta + (p-1)/p n gamma.
// Good when: messages are long and p is small. Poor when: p alpha dominates; a pipeline needs half
// the bytes on each link. Needs: a commutative operation (each block is summed beginning at another
// rank). Source: Chan, Heimlich, Purkayastha, van de Geijn: Collective communication: theory,
// practice, and experience, CCPE 19(13), 2007, doi:10.1002/cpe.1206.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce, ring_gather)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_RING_GATHER)
#define RAILPASS_COLLECTIVES_REDUCE_RING_GATHER

#include "collectives/parts.hpp"

namespace railpass::collectives::reduce {

inline schedule build_ring_gather(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  const int right = wrap(r + 1, p), left = wrap(r - 1, p);
  const block_range parts{.parts = p, .first = wrap(r - 2, p), .stride = -1};
  const loop rounds{.rounds = p - 1};
  const step_id seed = b.send(buffer::input, {.parts = p, .first = left}, right);
  const step_id partial = b.receive(buffer::scratch0, parts, left, {}, rounds);
  const step_id sum = b.reduce(buffer::input, buffer::scratch0, parts, {each(partial)}, rounds);
  b.send(buffer::scratch0, parts, right, {each(sum)}, {.rounds = p - 2});
  if (r != 0) {
    b.send(buffer::scratch0, {.parts = p, .first = r}, 0, {whole(sum)});
    return b.finish();
  }
  // Round i receives block p-1-i. In an in-place call it overwrites a part of the input that was
  // sent at the start (i = 0) or added in round i-1.
  b.receive(buffer::output, {.parts = p, .first = p - 1, .stride = -1}, p - 1,
            {whole(seed), each(sum, 1)}, {.rounds = p - 1, .peer_stride = -1});
  b.copy(buffer::scratch0, buffer::output, {.parts = p}, {whole(sum)});
  return b.finish();
}

inline double cost_ring_gather(const cost_query& q, const parameters&) {
  const double block = q.bytes / q.num_ranks;
  const routes r(q, block);
  const int rounds = q.num_ranks - 1;
  const double reduce_s = q.machine.reduce.time_s(block);
  const int near = r.per_node - 1;
  return r.shifts_s(rounds) + rounds * reduce_s + r.far.one_way_s +
         std::max(0, rounds - near - 1) * r.far.busy_s + near * r.near.busy_s;
}

inline constexpr algorithm ring_gather{.op = collective::reduce,
                                       .name = "ring_gather",
                                       .source = "Chan et al. 2007, doi:10.1002/cpe.1206",
                                       .needs = {.commutative = true},
                                       .scratch = {.messages = 1},
                                       .build = build_ring_gather,
                                       .cost_s = cost_ring_gather};

}  // namespace railpass::collectives::reduce

#endif

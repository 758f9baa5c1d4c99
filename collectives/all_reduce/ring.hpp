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

#include "collectives/parts.hpp"

namespace railpass::collectives::all_reduce {

/// The ring with blocks cut in segments (segment_bytes 0: one per block); see segmented_ring.hpp.
inline schedule build_segmented_ring_of(const shape& s, std::int64_t segment_bytes) {
  builder b(s, segment_bytes);
  const int p = s.num_ranks, r = s.rank;
  const int right = wrap(r + 1, p), left = wrap(r - 1, p);
  const auto from_block = [p](int first) {
    return block_range{.parts = p, .first = wrap(first, p), .stride = -1};
  };
  const loop rounds{.rounds = p - 1, .segmented = true};

  // Round i receives the partial block r-1-i and adds this rank's part to it where it arrived: the
  // input is not written, and no copy of it is needed. The next round passes the sum on; what the
  // last round passes on is this rank's complete block, the first message of the all-gather.
  const step_id seed = b.send(buffer::input, from_block(r), right, {}, by_segments);
  const step_id partial = b.receive(buffer::scratch0, from_block(r - 1), left, {}, rounds);
  const step_id sum =
      b.reduce(buffer::input, buffer::scratch0, from_block(r - 1), {each(partial)}, rounds);
  b.send(buffer::scratch0, from_block(r - 1), right, {each(sum)}, rounds);
  b.copy(buffer::scratch0, buffer::output, from_block(r + 1), {whole(sum)}, by_segments);

  // Round i receives the complete block r-i. In an in-place call it overwrites a part of the input
  // that was sent at the start (i = 0) or added in round i-1.
  const step_id complete =
      b.receive(buffer::output, from_block(r), left, {each(seed), each(sum, 1)}, rounds);
  b.send(buffer::output, from_block(r), right, {each(complete)},
         {.rounds = p - 2, .segmented = true});
  return b.finish();
}

inline schedule build_ring(const shape& s, const parameters&) {
  return build_segmented_ring_of(s, 0);
}

inline double cost_ring(const cost_query& q, const parameters&) {
  const double block = q.bytes / q.num_ranks;
  const routes r(q, block);
  const int rounds = q.num_ranks - 1;
  const double reduce_s = q.machine.reduce.time_s(block);
  // A block's way around the ring twice, or all blocks over one link.
  const double link_s = (2 * rounds - 1) * r.far.stage_s(1, 1) + r.far.one_way_s;
  return std::max(2 * r.shifts_s(rounds) + rounds * reduce_s, link_s);
}

inline constexpr algorithm ring{.op = collective::all_reduce,
                                .name = "ring",
                                .source = "Patarasuk and Yuan 2009, doi:10.1016/j.jpdc.2008.09.002",
                                .needs = {.commutative = true},
                                .scratch = {.messages = 1},
                                .build = build_ring,
                                .cost_s = cost_ring};

}  // namespace railpass::collectives::all_reduce

#endif

// SPDX-License-Identifier: BSL-1.0
//
// Segmented ring: the ring with every block cut in segments, so that a rank passes on one segment
// while the next arrives: between two blocks no link waits for the next one to be announced and
// asked for. p = 8: seven rounds r -> r+1, S segments in each.
//
// Cost, in S segments of m bytes per block: (p-1) S (alpha + m beta), so (p-1)/p n beta, n the
// bytes of all blocks.
// Good when: n beta dominates and the blocks are long. Poor when: p alpha dominates.
// Needs: nothing.
// Source: Pjesivac-Grbovic et al.: Performance analysis of MPI collective operations, Cluster
// Computing 10(2), 2007, doi:10.1007/s10586-007-0012-0, for the segments; the ring itself: Thakur,
// Rabenseifner, Gropp, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gather, segmented_ring)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHER_SEGMENTED_RING)
#define RAILPASS_COLLECTIVES_ALL_GATHER_SEGMENTED_RING

#include "collectives/parts.hpp"

namespace railpass::collectives::all_gather {

inline schedule build_segmented_ring(const shape& s, const parameters& values) {
  builder b(s, values[0]);
  const int p = s.num_ranks, r = s.rank;
  const int right = wrap(r + 1, p), left = wrap(r - 1, p);
  const block_range own{.parts = p, .first = r};
  const block_range others{.parts = p, .first = left, .stride = -1};
  b.send(buffer::input, own, right, {}, by_segments);
  b.copy(buffer::input, buffer::output, own);
  const step_id arrived =
      b.receive(buffer::output, others, left, {}, {.rounds = p - 1, .segmented = true});
  b.send(buffer::output, others, right, {each(arrived)}, {.rounds = p - 2, .segmented = true});
  return b.finish();
}

inline double cost_segmented_ring(const cost_query& q, const parameters& values) {
  const double block = q.bytes / q.num_ranks;
  const stream st(block, values[0], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  const int rounds = q.num_ranks - 1;
  // Only one large message is in flight.
  const double longest_bytes = std::min(block, double(values[0]));
  const double alone_s = longest_bytes >= double(large_message_bytes) ? r.far.shift_s : 0;
  // One segment's way around the ring, or all segments through one rank.
  return std::max(r.way_s(rounds),
                  (rounds * st.segments - 1) * std::max(alone_s, r.far.stage_s(1, 1)) +
                      r.far.one_way_s) +
         q.machine.copy.time_s(block);
}

inline constexpr algorithm segmented_ring{
    .op = collective::all_gather,
    .name = "segmented_ring",
    .source =
        "Pjesivac-Grbovic et al. 2007, doi:10.1007/s10586-007-0012-0; Thakur et al. 2005, "
        "doi:10.1177/1094342005051521",
    .needs = {},
    // Without segments it is the ring.
    .parameter_list = {parameter{
        "segment_bytes", {16 << 10, 8 << 10, 32 << 10, 64 << 10, 128 << 10}, true}},
    .build = build_segmented_ring,
    .cost_s = cost_segmented_ring};

}  // namespace railpass::collectives::all_gather

#endif

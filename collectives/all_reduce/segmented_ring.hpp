// SPDX-License-Identifier: BSL-1.0
//
// Segmented ring: the ring with every block cut in segments, so that a rank adds one segment while
// the next arrives, and passes it on before the block is complete.
// p = 8: seven rounds r -> r+1 with reduction, seven without, S segments in each.
//
// Cost, in S segments of m bytes per block: 2 (p-1) (alpha + m beta) + (p-1) m gamma to fill, then
// 2 (p-1)/p n beta for all of it; the reductions are hidden.
// Good when: n beta dominates and the blocks are long. Poor when: p alpha dominates.
// Needs: a commutative operation (each block is summed beginning at another rank).
// Source: Pjesivac-Grbovic et al.: Performance analysis of MPI collective operations, Cluster
// Computing 10(2), 2007, doi:10.1007/s10586-007-0012-0; the ring itself: Patarasuk, Yuan, JPDC
// 69(2), 2009, doi:10.1016/j.jpdc.2008.09.002.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_reduce, segmented_ring)
#elif !defined(RAILPASS_COLLECTIVES_ALL_REDUCE_SEGMENTED_RING)
#define RAILPASS_COLLECTIVES_ALL_REDUCE_SEGMENTED_RING

#include "collectives/all_reduce/ring.hpp"

namespace railpass::collectives::all_reduce {

inline schedule build_segmented_ring(const shape& s, const parameters& values) {
  return build_segmented_ring_of(s, values[0]);
}

inline double cost_segmented_ring(const cost_query& q, const parameters& values) {
  const stream st(q.bytes / q.num_ranks, values[0], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  const int rounds = q.num_ranks - 1;
  const double reduce_s = q.machine.reduce.time_s(st.segment_bytes);
  // One segment's way around the ring twice, or all segments through one rank.
  const double way_s = 2 * r.shifts_s(rounds) + rounds * reduce_s;
  // Only one large message is in flight.
  const double longest_bytes = std::min(q.bytes / q.num_ranks, double(values[0]));
  const double alone_s = longest_bytes >= double(large_message_bytes) ? r.far.shift_s : 0;
  const double rank_s = rounds * st.segments *
                            (std::max(alone_s, r.far.stage_s(1, 1, reduce_s)) +
                             std::max(alone_s, r.far.stage_s(1, 1))) +
                        r.far.one_way_s - r.far.busy_s;
  return std::max(way_s, rank_s);
}

inline constexpr algorithm segmented_ring{
    .op = collective::all_reduce,
    .name = "segmented_ring",
    .source =
        "Pjesivac-Grbovic et al. 2007, doi:10.1007/s10586-007-0012-0; Patarasuk and Yuan "
        "2009, doi:10.1016/j.jpdc.2008.09.002",
    .needs = {.commutative = true},
    .scratch = {.messages = 1},
    // Without segments it is the ring.
    .parameter_list = {parameter{"segment_bytes",
                                 {32 << 10, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10,
                                  128 << 10, 256 << 10, 512 << 10, 1 << 20},
                                 true}},
    .build = build_segmented_ring,
    .cost_s = cost_segmented_ring};

}  // namespace railpass::collectives::all_reduce

#endif

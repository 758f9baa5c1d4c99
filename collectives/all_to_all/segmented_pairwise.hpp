// SPDX-License-Identifier: BSL-1.0
//
// Segmented pairwise exchange: blocks go out in the order of pairwise exchange, cut in segments of
// which a few are under way; a segment goes when the one that it overwrites has come in the round
// before. So no link waits between two rounds until the next block is announced and asked for, and
// no rank is more than a round ahead of those it receives from. p = 8: seven rounds r -> r+i, S
// segments in each.
//
// Cost, in S segments of m bytes per block: (p-1) S (alpha + m beta).
// Good when: blocks are long and the network keeps up with one message at a time. Poor when: they
// are short.
// Needs: nothing.
// Source: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
// MPICH, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521, for the order; segments as in
// Pjesivac-Grbovic et al., Cluster Computing 10(2), 2007, doi:10.1007/s10586-007-0012-0.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_to_all, segmented_pairwise)
#elif !defined(RAILPASS_COLLECTIVES_ALL_TO_ALL_SEGMENTED_PAIRWISE)
#define RAILPASS_COLLECTIVES_ALL_TO_ALL_SEGMENTED_PAIRWISE

#include "collectives/blocks.hpp"

namespace railpass::collectives::all_to_all {

/// Enough for the next to follow at once; with more the order gets lost.
inline constexpr std::int32_t segments_under_way = 4;

inline schedule build_segmented_pairwise(const shape& s, const parameters& values) {
  builder b(s, values[0]);
  const int p = s.num_ranks, r = s.rank;
  const int right = wrap(r + 1, p), left = wrap(r - 1, p);
  const step_id arrived = b.receive(
      buffer::output, {.parts = p, .first = left, .stride = -1}, left, {},
      {.rounds = p - 1, .peer_stride = -1, .segmented = true, .window = 2 * segments_under_way});
  b.send(buffer::input, {.parts = p, .first = right, .stride = 1}, right, {each(arrived, 1)},
         {.rounds = p - 1, .peer_stride = 1, .segmented = true, .window = segments_under_way});
  b.copy(buffer::input, buffer::output, {.parts = p, .first = r});
  return b.finish();
}

inline double cost_segmented_pairwise(const cost_query& q, const parameters& values) {
  const double block = q.bytes / q.num_ranks;
  const stream st(block, values[0], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  // Only one large message is in flight.
  const double longest_bytes = std::min(block, double(values[0]));
  const double alone_s = longest_bytes >= double(large_message_bytes) ? r.far.shift_s : 0;
  double total_s = q.machine.copy.time_s(block);
  for (int distance = 1; distance < q.num_ranks; ++distance) {
    const double leave = leaving(q, std::min(distance, q.num_ranks - distance));
    const hop& h = leave > 0 ? r.far : r.near;
    const double stage_s =
        leave > 0 ? std::max({alone_s, leave * h.busy_s, h.stage_s(1, 1)}) : h.stage_s(1, 1);
    // A round takes at least as long as one segment's way, and the last one that besides.
    const double way_s = distance == q.num_ranks - 1 ? h.exchange_s - stage_s : 0;
    total_s += std::max(st.segments * stage_s + way_s, h.exchange_s);
  }
  return total_s;
}

inline constexpr algorithm segmented_pairwise{
    .op = collective::all_to_all,
    .name = "segmented_pairwise",
    .source =
        "Thakur et al. 2005, doi:10.1177/1094342005051521; Pjesivac-Grbovic et al. 2007, "
        "doi:10.1007/s10586-007-0012-0",
    .needs = {},
    // Without segments it is pairwise exchange.
    .parameter_list = {parameter{
        "segment_bytes", {16 << 10, 8 << 10, 32 << 10, 64 << 10, 128 << 10}, true}},
    .build = build_segmented_pairwise,
    .cost_s = cost_segmented_pairwise};

}  // namespace railpass::collectives::all_to_all

#endif

// SPDX-License-Identifier: BSL-1.0
//
// Direct scatter and all-gather: the message is cut in p-1 blocks. The root sends each rank a block
// of its own, segment by segment, and that rank passes every segment on to all others at once. p =
// 8: 0->1 .. 0->7 with 1/7 of the message each, and every r->s between 1 and 7 with r's block.
//
// Cost, in S segments of m bytes per block: 2 alpha + (p-1) S m beta + (p-2) m beta, so n beta for
// long messages: the root's link carries the message once, all others less; two hops for any p.
// Good when: messages are long and every pair of ranks has a way of its own.
// Poor when: messages are short (p-1 messages per rank and segment).
// Needs: at most 128 ranks (a step for each pair).
// Source: the scatter and collect of Barnett et al.: Interprocessor collective communication
// library (InterCom), SHPCC 1994, doi:10.1109/SHPCC.1994.296665, done with direct messages; with
// segments: Li, Chou, Zhang: Mutualcast: an efficient mechanism for one-to-many content
// distribution, Microsoft Research MSR-TR-2004-100.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, scatter_allgather_direct)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_SCATTER_ALLGATHER_DIRECT)
#define RAILPASS_COLLECTIVES_BROADCAST_SCATTER_ALLGATHER_DIRECT

#include "collectives/parts.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_scatter_allgather_direct(const shape& s, const parameters& values) {
  builder b(s, values[0]);
  const int p = s.num_ranks, v = s.rank;
  const auto block_of = [p](int rank) { return block_range{.parts = p - 1, .first = rank - 1}; };
  if (v == 0) {
    for (int to = 1; to < p; ++to) b.send(buffer::output, block_of(to), to, {}, by_segments);
    return b.finish();
  }
  // Everybody begins with the next rank, so that no two begin with the same one.
  const step_id own = b.receive(buffer::output, block_of(v), 0, {}, by_segments);
  const auto other = [&](int i) { return 1 + wrap(v - 1 + i, p - 1); };
  for (int i = 1; i < p - 1; ++i)
    b.receive(buffer::output, block_of(other(-i)), other(-i), {}, by_segments);
  for (int i = 1; i < p - 1; ++i)
    b.send(buffer::output, block_of(v), other(i), {each(own)}, by_segments);
  return b.finish();
}

inline double cost_scatter_allgather_direct(const cost_query& q, const parameters& values) {
  const int others = q.num_ranks - 1;
  const stream st(q.bytes / others, values[0], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  // The root serves one rank after the other; the last one passes its last segment on to all.
  const double root_s = (others * st.segments - 1) * r.far.busy_s;
  if (others == 1) return r.far.one_way_s + root_s;
  const int far_ranks = q.num_ranks - r.per_node;  // from the node of any rank
  const double rank_s =
      st.segments * std::max(r.far.stage_s(others - 1, others),
                             r.per_node > 1 ? r.per_node * far_ranks * r.far.busy_s : 0);
  const double last_s = r.far.one_way_s + (others - 2) * r.far.busy_s;
  return r.far.one_way_s + std::max(root_s + last_s, rank_s + r.far.one_way_s);
}

inline constexpr algorithm scatter_allgather_direct{
    .op = collective::broadcast,
    .name = "scatter_allgather_direct",
    .source =
        "Barnett et al. 1994, doi:10.1109/SHPCC.1994.296665; Li, Chou and Zhang, MSR-TR-2004-100",
    .needs = {.max_ranks = 128},
    .parameter_list = {segment_bytes_parameter},
    .build = build_scatter_allgather_direct,
    .cost_s = cost_scatter_allgather_direct};

}  // namespace railpass::collectives::broadcast

#endif

// SPDX-License-Identifier: BSL-1.0
//
// Chain: the other ranks stand in fan_out chains of nearly equal length; the root feeds the head of
// each, and every rank passes on what it gets.
// p = 8, fan_out 2: 0->1->2->3->4 and 0->5->6->7.
//
// Cost, in S segments of m bytes: (p/f - 1) (alpha + m beta) + S f m beta.
// Good when: the pipeline of one chain would be too long to fill. Poor when: messages are short.
// Needs: nothing.
// Source: Pjesivac-Grbovic et al.: Performance analysis of MPI collective operations, Cluster
// Computing 10(2), 2007, doi:10.1007/s10586-007-0012-0.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, chain)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_CHAIN)
#define RAILPASS_COLLECTIVES_BROADCAST_CHAIN

#include "collectives/trees.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_chain(const shape& s, const parameters& values) {
  const int chains = int(std::min<std::int64_t>(values[0], s.num_ranks));
  return build_tree_broadcast(s, {{chains_tree(s.rank, s.num_ranks, chains)}}, values[1]);
}

inline double cost_chain(const cost_query& q, const parameters& values) {
  const stream st(q.bytes, values[1], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  const int others = q.num_ranks - 1;
  const int chains = int(std::min<std::int64_t>(values[0], others));
  const int shortest = others / chains, longer = others % chains;
  // The last of the longer chains, or the last of all; nearly all heads are on other nodes.
  const auto end_s = [&](int before, int length) {
    return before * r.far.busy_s + r.far.one_way_s + r.way_s(length - 1);
  };
  // What leaves the root's node: to the heads elsewhere, and where a chain that begins there goes
  // on.
  int leaving = 0;
  for (int c = 0; c < chains; ++c)
    if (1 + block_begin(others, chains, c + 1) > r.per_node) ++leaving;
  const int early = chains - leaving;  // chains that end on the root's node
  const double depth_s =
      std::max(end_s(std::max(0, chains - 1 - early), shortest),
               longer > 0 ? end_s(std::max(0, longer - 1 - early), shortest + 1) : 0);
  return depth_s +
         (st.segments - 1) * std::max({r.far.stage_s(leaving, 0), r.near.stage_s(chains, 0),
                                       others > chains ? r.far.stage_s(1, 1) : 0});
}

inline constexpr algorithm chain{
    .op = collective::broadcast,
    .name = "chain",
    .source = "Pjesivac-Grbovic et al. 2007, doi:10.1007/s10586-007-0012-0",
    .needs = {},
    .parameter_list = {parameter{"fan_out", {4, 2, 8}}, segment_bytes_parameter},
    .build = build_chain,
    .cost_s = cost_chain};

}  // namespace railpass::collectives::broadcast

#endif

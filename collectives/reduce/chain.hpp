// SPDX-License-Identifier: BSL-1.0
//
// Chain: the other ranks stand in fan_out chains of nearly equal length; partial sums go along each
// to its head, and from the heads to the root. p = 8, fan_out 2: 4->3->2->1->0 and 7->6->5->0.
//
// Cost, in S segments of m bytes: (p/f - 1) (alpha + m beta + m gamma) + S f m (beta + gamma).
// Good when: the pipeline of one chain would be too long to fill. Poor when: messages are short.
// Needs: nothing; rank order is kept.
// Source: Pjesivac-Grbovic et al.: Performance analysis of MPI collective operations, Cluster
// Computing 10(2), 2007, doi:10.1007/s10586-007-0012-0.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce, chain)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_CHAIN)
#define RAILPASS_COLLECTIVES_REDUCE_CHAIN

#include "collectives/trees.hpp"

namespace railpass::collectives::reduce {

inline schedule build_chain(const shape& s, const parameters& values) {
  const int chains = int(std::min<std::int64_t>(values[0], s.num_ranks));
  return build_tree_reduce(s, {{chains_tree(s.rank, s.num_ranks, chains)}}, values[1]);
}

inline double cost_chain(const cost_query& q, const parameters& values) {
  const stream st(q.bytes, values[1], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  const double reduce_s = q.machine.reduce.time_s(st.segment_bytes);
  const int others = q.num_ranks - 1;
  const int chains = int(std::min<std::int64_t>(values[0], others));
  // Along the longest chain, which is the first one and is waited for: then come the others.
  const int longest = (others + chains - 1) / chains;
  const double root_s = r.far.stage_s(0, chains, chains * reduce_s);
  const double depth_s = r.way_s(longest - 1) + r.far.one_way_s + longest * reduce_s +
                         (chains - 1) * r.far.stage_s(0, 1, reduce_s);
  return depth_s + q.machine.copy.time_s(st.segment_bytes) +
         (st.segments - 1) * std::max(root_s, longest > 1 ? r.far.stage_s(1, 1, reduce_s) : 0);
}

inline constexpr algorithm chain{
    .op = collective::reduce,
    .name = "chain",
    .source = "Pjesivac-Grbovic et al. 2007, doi:10.1007/s10586-007-0012-0",
    .needs = {},
    .scratch = {.messages = 2},
    .parameter_list = {parameter{"fan_out", {4, 2, 8}}, segment_bytes_parameter},
    .build = build_chain,
    .cost_s = cost_chain};

}  // namespace railpass::collectives::reduce

#endif

// SPDX-License-Identifier: BSL-1.0
//
// Pipeline: partial sums go from the last rank down to the root, segment by segment; every rank
// adds its own part. p = 8: 7->6->5->4->3->2->1->0, all links busy at once when there are enough
// segments.
//
// Cost, in S segments of m bytes: (p-2+S) (alpha + m beta + m gamma), so n beta for long messages:
// no link carries the message more than once. Good when: n beta dominates. Poor when: messages are
// short (p-1 hops), or unsegmented. Needs: nothing; rank order is kept. Source: Pjesivac-Grbovic et
// al.: Performance analysis of MPI collective operations, Cluster Computing 10(2), 2007,
// doi:10.1007/s10586-007-0012-0.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce, pipeline)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_PIPELINE)
#define RAILPASS_COLLECTIVES_REDUCE_PIPELINE

#include "collectives/trees.hpp"

namespace railpass::collectives::reduce {

inline schedule build_pipeline(const shape& s, const parameters& values) {
  return build_tree_reduce(s, {{range_tree(s.rank, s.num_ranks, 1)}}, values[0]);
}

inline double cost_pipeline(const cost_query& q, const parameters& values) {
  const stream st(q.bytes, values[0], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  const double reduce_s = q.machine.reduce.time_s(st.segment_bytes);
  const int hops = q.num_ranks - 1;
  return r.way_s(hops) + hops * reduce_s + q.machine.copy.time_s(st.segment_bytes) +
         (st.segments - 1) * r.far.stage_s(hops > 1 ? 1 : 0, 1, reduce_s);
}

inline constexpr algorithm pipeline{
    .op = collective::reduce,
    .name = "pipeline",
    .source = "Pjesivac-Grbovic et al. 2007, doi:10.1007/s10586-007-0012-0",
    .needs = {},
    .scratch = {.messages = 1},
    .parameter_list = {segment_bytes_parameter},
    .build = build_pipeline,
    .cost_s = cost_pipeline};

}  // namespace railpass::collectives::reduce

#endif

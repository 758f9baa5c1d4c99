// SPDX-License-Identifier: BSL-1.0
//
// Pipeline: every rank passes on to the next what it gets from the one before, segment by segment.
// p = 8: 0->1->2->3->4->5->6->7, all links busy at once when there are enough segments.
//
// Cost, in S segments of m bytes: (p-2+S) (alpha + m beta), so n beta for long messages: no link
// carries the message more than once.
// Good when: n beta dominates. Poor when: messages are short (p-1 hops), or unsegmented.
// Needs: nothing.
// Source: Pjesivac-Grbovic et al.: Performance analysis of MPI collective operations, Cluster
// Computing 10(2), 2007, doi:10.1007/s10586-007-0012-0.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, pipeline)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_PIPELINE)
#define RAILPASS_COLLECTIVES_BROADCAST_PIPELINE

#include "collectives/parts.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_pipeline(const shape& s, const parameters& values) {
  builder b(s, values[0]);
  const step_id arrived =
      s.rank == 0 ? no_step : b.receive(buffer::output, {}, s.rank - 1, {}, by_segments);
  if (s.rank + 1 < s.num_ranks)
    b.send(buffer::output, {}, s.rank + 1, {each(arrived)}, by_segments);
  return b.finish();
}

inline double cost_pipeline(const cost_query& q, const parameters& values) {
  const stream st(q.bytes, values[0], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  return r.way_s(q.num_ranks - 1) + (st.segments - 1) * r.far.stage_s(1, q.num_ranks > 2 ? 1 : 0);
}

inline constexpr algorithm pipeline{
    .op = collective::broadcast,
    .name = "pipeline",
    .source = "Pjesivac-Grbovic et al. 2007, doi:10.1007/s10586-007-0012-0",
    .needs = {},
    .parameter_list = {segment_bytes_parameter},
    .build = build_pipeline,
    .cost_s = cost_pipeline};

}  // namespace railpass::collectives::broadcast

#endif

// SPDX-License-Identifier: BSL-1.0
//
// Pipeline: what a rank gets from the rank below it is its result; it passes on the sum of that and
// its input, segment by segment. p = 8: 0->1->2->...->7.
//
// Cost, in S segments of m bytes: (p-1) (alpha + m beta + m gamma) to fill, then S (m beta + m
// gamma). Good when: messages are long. Poor when: p alpha dominates. Needs: nothing; rank order is
// kept. Source: Pjesivac-Grbovic et al.: Performance analysis of MPI collective operations, Cluster
// Computing 10(2), 2007, doi:10.1007/s10586-007-0012-0 (its pipeline).
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(exscan, pipeline)
#elif !defined(RAILPASS_COLLECTIVES_EXSCAN_PIPELINE)
#define RAILPASS_COLLECTIVES_EXSCAN_PIPELINE

#include "collectives/parts.hpp"

namespace railpass::collectives::exscan {

inline schedule build_pipeline(const shape& s, const parameters& values) {
  builder b(s, values[0]);
  const int p = s.num_ranks, r = s.rank;
  if (r == 0) {
    b.send(buffer::input, {}, 1, {}, by_segments);
    return b.finish();
  }
  // In place the result overwrites the input, of which the sum takes up a copy.
  if (r + 1 == p) {
    b.receive(buffer::output, {}, r - 1, {}, by_segments);
    return b.finish();
  }
  const step_id before = b.receive(buffer::scratch0, {}, r - 1, {}, by_segments);
  const step_id own = b.copy(buffer::input, buffer::scratch1, {}, {}, by_segments);
  const step_id sum =
      b.reduce(buffer::scratch0, buffer::scratch1, {}, {each(before), each(own)}, by_segments);
  b.send(buffer::scratch1, {}, r + 1, {each(sum)}, by_segments);
  b.copy(buffer::scratch0, buffer::output, {}, {each(before), each(own)}, by_segments);
  return b.finish();
}

inline double cost_pipeline(const cost_query& q, const parameters& values) {
  const stream st(q.bytes, values[0], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  const double local_s =
      q.machine.reduce.time_s(st.segment_bytes) + q.machine.copy.time_s(st.segment_bytes);
  const int hops = q.num_ranks - 1;
  return r.way_s(hops) + hops * q.machine.reduce.time_s(st.segment_bytes) +
         (st.segments - 1) * r.far.stage_s(1, 1, local_s);
}

inline constexpr algorithm pipeline{
    .op = collective::exscan,
    .name = "pipeline",
    .source = "Pjesivac-Grbovic et al. 2007, doi:10.1007/s10586-007-0012-0",
    .needs = {},
    .scratch = {.messages = 2},
    .parameter_list = {segment_bytes_parameter},
    .build = build_pipeline,
    .cost_s = cost_pipeline};

}  // namespace railpass::collectives::exscan

#endif

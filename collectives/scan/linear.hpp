// SPDX-License-Identifier: BSL-1.0
//
// Linear: every rank adds its part to what comes from the rank before and passes the sum on,
// segment by segment. p = 8: 0->1->2->3->4->5->6->7.
//
// Cost, in S segments of m bytes: (p-2+S) (alpha + m beta + m gamma), so n beta for long messages.
// Good when: messages are long, or ranks are few. Poor when: messages are short (p-1 hops).
// Needs: nothing; rank order is kept.
// Source: Sanders, Traeff: Parallel prefix (scan) algorithms for MPI, EuroPVM/MPI 2006,
// doi:10.1007/11846802_15.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(scan, linear)
#elif !defined(RAILPASS_COLLECTIVES_SCAN_LINEAR)
#define RAILPASS_COLLECTIVES_SCAN_LINEAR

#include "collectives/parts.hpp"

namespace railpass::collectives::scan {

inline schedule build_linear(const shape& s, const parameters& values) {
  builder b(s, values[0]);
  step_id sum = b.copy(buffer::input, buffer::output, {}, {}, by_segments);
  if (s.rank > 0) {
    const step_id before = b.receive(buffer::scratch0, {}, s.rank - 1, {}, by_segments);
    sum = b.reduce(buffer::scratch0, buffer::output, {}, {each(before), each(sum)}, by_segments);
  }
  if (s.rank + 1 < s.num_ranks) b.send(buffer::output, {}, s.rank + 1, {each(sum)}, by_segments);
  return b.finish();
}

inline double cost_linear(const cost_query& q, const parameters& values) {
  const stream st(q.bytes, values[0], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  const double reduce_s = q.machine.reduce.time_s(st.segment_bytes);
  const int hops = q.num_ranks - 1;
  return q.machine.copy.time_s(st.segment_bytes) + r.way_s(hops) + hops * reduce_s +
         (st.segments - 1) * r.far.stage_s(1, hops > 1 ? 1 : 0, reduce_s);
}

inline constexpr algorithm linear{.op = collective::scan,
                                  .name = "linear",
                                  .source = "Sanders and Traeff 2006, doi:10.1007/11846802_15",
                                  .needs = {},
                                  .scratch = {.messages = 1},
                                  .parameter_list = {segment_bytes_parameter},
                                  .build = build_linear,
                                  .cost_s = cost_linear};

}  // namespace railpass::collectives::scan

#endif

// SPDX-License-Identifier: BSL-1.0
//
// Linear: every rank passes on to the next the sum of what comes from the rank before and its own
// part, segment by segment. p = 8: 0->1->2->3->4->5->6->7.
//
// Cost, in S segments of m bytes: (p-2+S) (alpha + m beta + m gamma), so n beta for long messages.
// Good when: messages are long, or ranks are few. Poor when: messages are short (p-1 hops).
// Needs: nothing; rank order is kept.
// Source: Sanders, Traeff: Parallel prefix (scan) algorithms for MPI, EuroPVM/MPI 2006,
// doi:10.1007/11846802_15.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(exscan, linear)
#elif !defined(RAILPASS_COLLECTIVES_EXSCAN_LINEAR)
#define RAILPASS_COLLECTIVES_EXSCAN_LINEAR

#include "collectives/parts.hpp"

namespace railpass::collectives::exscan {

inline schedule build_linear(const shape& s, const parameters& values) {
  builder b(s, values[0]);
  const bool is_last = s.rank + 1 == s.num_ranks;
  if (s.rank == 0) {
    if (!is_last) b.send(buffer::input, {}, 1, {}, by_segments);
    return b.finish();
  }
  // In an in-place call the output is the input, which the sum for the next rank needs.
  step_id own = no_step;
  if (!is_last) own = b.copy(buffer::input, buffer::scratch1, {}, {}, by_segments);
  const step_id before = b.receive(buffer::scratch0, {}, s.rank - 1, {}, by_segments);
  if (!is_last) {
    const step_id sum =
        b.reduce(buffer::scratch0, buffer::scratch1, {}, {each(before), each(own)}, by_segments);
    b.send(buffer::scratch1, {}, s.rank + 1, {each(sum)}, by_segments);
  }
  b.copy(buffer::scratch0, buffer::output, {}, {each(before), each(own)}, by_segments);
  return b.finish();
}

inline double cost_linear(const cost_query& q, const parameters& values) {
  const stream st(q.bytes, values[0], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  const double reduce_s = q.machine.reduce.time_s(st.segment_bytes);
  const double copy_s = q.machine.copy.time_s(st.segment_bytes);
  const int hops = q.num_ranks - 1;
  return copy_s + r.way_s(hops) + (hops - 1) * reduce_s +
         (st.segments - 1) *
             (hops > 1 ? r.far.stage_s(1, 1, reduce_s + copy_s) : r.far.stage_s(0, 1, copy_s));
}

inline constexpr algorithm linear{.op = collective::exscan,
                                  .name = "linear",
                                  .source = "Sanders and Traeff 2006, doi:10.1007/11846802_15",
                                  .needs = {},
                                  .scratch = {.messages = 2},
                                  .parameter_list = {segment_bytes_parameter},
                                  .build = build_linear,
                                  .cost_s = cost_linear};

}  // namespace railpass::collectives::exscan

#endif

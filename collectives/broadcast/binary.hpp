// SPDX-License-Identifier: BSL-1.0
//
// Binary tree: rank v passes every segment on to ranks 2v+1 and 2v+2.
// p = 8: 0->1 0->2, then 1->3 1->4 2->5 2->6, then 3->7.
//
// Cost, in S segments of m bytes: log2 p (alpha + 2 m beta) + S 2 m beta.
// Good when: messages are of medium length and p is large (fewer hops than a pipeline, less on the
// root's link than binomial). Poor when: n beta dominates (every inner link carries 2 n).
// Needs: nothing.
// Source: Pjesivac-Grbovic et al.: Performance analysis of MPI collective operations, Cluster
// Computing 10(2), 2007, doi:10.1007/s10586-007-0012-0.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, binary)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_BINARY)
#define RAILPASS_COLLECTIVES_BROADCAST_BINARY

#include "collectives/parts.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_binary(const shape& s, const parameters& values) {
  builder b(s, values[0]);
  const int v = s.rank;
  const step_id arrived =
      v == 0 ? no_step : b.receive(buffer::output, {}, (v - 1) / 2, {}, by_segments);
  for (const int child : {2 * v + 1, 2 * v + 2})
    if (child < s.num_ranks) b.send(buffer::output, {}, child, {each(arrived)}, by_segments);
  return b.finish();
}

inline double cost_binary(const cost_query& q, const parameters& values) {
  const stream st(q.bytes, values[0], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  return binary_depth_s(q.num_ranks, r) + (st.segments - 1) * binary_stage_s(q.num_ranks, r);
}

inline constexpr algorithm binary{
    .op = collective::broadcast,
    .name = "binary",
    .source = "Pjesivac-Grbovic et al. 2007, doi:10.1007/s10586-007-0012-0",
    .needs = {},
    .parameter_list = {segment_bytes_parameter},
    .build = build_binary,
    .cost_s = cost_binary};

}  // namespace railpass::collectives::broadcast

#endif

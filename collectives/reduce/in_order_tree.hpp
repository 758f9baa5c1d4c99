// SPDX-License-Identifier: BSL-1.0
//
// Tree of ranges: a rank's subtree is a range of ranks that begins with it; the rest of the range
// is cut in fan_out parts, whose first ranks are the children. Partial sums go up segment by
// segment.
// p = 8, fan_out 2: 2 and 4 send to 1, 6 and 7 to 5, 1 and 5 to 0; 3 to 2.
//
// Cost, in S segments of m bytes, fan_out f, depth d: d (alpha + f m beta + f m gamma) to fill,
// then S f (m beta + m gamma).
// Good when: messages are of medium length and p is large. Poor when: there are few segments, or
// n beta dominates (f messages over the root's link).
// Needs: nothing; rank order is kept.
// Source: Pjesivac-Grbovic et al.: Performance analysis of MPI collective operations, Cluster
// Computing 10(2), 2007, doi:10.1007/s10586-007-0012-0.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce, in_order_tree)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_IN_ORDER_TREE)
#define RAILPASS_COLLECTIVES_REDUCE_IN_ORDER_TREE

#include "collectives/trees.hpp"

namespace railpass::collectives::reduce {

inline schedule build_in_order_tree(const shape& s, const parameters& values) {
  const int fan_out = int(std::min<std::int64_t>(values[0], s.num_ranks));
  return build_tree_reduce(s, {{range_tree(s.rank, s.num_ranks, fan_out)}}, values[1]);
}

inline double cost_in_order_tree(const cost_query& q, const parameters& values) {
  const stream st(q.bytes, values[1], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  const int p = q.num_ranks, fan_out = int(std::min<std::int64_t>(values[0], p - 1));
  const double reduce_s = q.machine.reduce.time_s(st.segment_bytes);
  const bool waits = st.segment_bytes > q.slowest_link().eager_limit_bytes;
  const double first_s = range_tree_ways(fan_out, r, reduce_s, waits).of(p).up_s +
                         q.machine.copy.time_s(st.segment_bytes);
  const double stage_s = r.far.stage_s(p > fan_out + 1 ? 1 : 0, fan_out, fan_out * reduce_s);
  return first_s + (st.segments - 1) * stage_s;
}

inline constexpr algorithm in_order_tree{
    .op = collective::reduce,
    .name = "in_order_tree",
    .source = "Pjesivac-Grbovic et al. 2007, doi:10.1007/s10586-007-0012-0",
    .needs = {},
    .scratch = {.messages = 2},
    .parameter_list = {parameter{"fan_out", {2, 4, 8}}, segment_bytes_parameter},
    .build = build_in_order_tree,
    .cost_s = cost_in_order_tree};

}  // namespace railpass::collectives::reduce

#endif

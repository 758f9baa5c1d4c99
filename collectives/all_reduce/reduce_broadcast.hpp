// SPDX-License-Identifier: BSL-1.0
//
// Reduce and broadcast on one tree, segment by segment: partial results go up, results come down,
// and both directions work at once. The subtree of every rank is a contiguous range of ranks that
// begins with it: the rest of the range is cut in fan_out nearly equal parts, whose first ranks are
// the children. fan_out 1 is a chain; with p-1 and more the tree is flat.
// p = 8, fan_out 2: 0 has 1 and 5; 1 has 2 and 4; 2 has 3; 5 has 6 and 7.
//
// Cost, in S segments of m bytes, fan_out f, depth d: 2 d (alpha + f m beta) + d f m gamma to fill,
// then S (f+1) m beta on an inner rank's link.
// Good when: flat, messages of a few bytes and few ranks; chain, long messages; binary between.
// Poor when: there are few segments and the tree is deep.
// Needs: nothing; rank order is kept.
// Source: Pjesivac-Grbovic et al.: Performance analysis of MPI collective operations, Cluster
// Computing 10(2), 2007, doi:10.1007/s10586-007-0012-0.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_reduce, reduce_broadcast)
#elif !defined(RAILPASS_COLLECTIVES_ALL_REDUCE_REDUCE_BROADCAST)
#define RAILPASS_COLLECTIVES_ALL_REDUCE_REDUCE_BROADCAST

#include "collectives/trees.hpp"

namespace railpass::collectives::all_reduce {

inline schedule build_reduce_broadcast(const shape& s, const parameters& values) {
  const int fan_out = int(std::min<std::int64_t>(values[0], s.num_ranks));
  return build_tree_all_reduce(s, {{range_tree(s.rank, s.num_ranks, fan_out)}}, values[1]);
}

inline double cost_reduce_broadcast(const cost_query& q, const parameters& values) {
  const stream st(q.bytes, values[1], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  const hop& h = r.far;
  const int p = q.num_ranks, fan_out = int(std::min<std::int64_t>(values[0], p - 1));
  const double reduce_s = q.machine.reduce.time_s(st.segment_bytes);
  const bool waits = st.segment_bytes > q.slowest_link().eager_limit_bytes;
  const auto [up_s, down_s] =
      fan_out == 1 ? range_tree_ways::way{r.way_s(p - 1) + (p - 1) * reduce_s, r.way_s(p - 1)}
                   : range_tree_ways(fan_out, r, reduce_s, waits).of(p);
  // For the busiest rank below the root.
  const int inner_children =
      fan_out == 1 ? int(p > 2 * r.per_node) : std::min(fan_out, (p - 2) / fan_out);
  const double root_s =
      h.stage_s(fan_out, fan_out, fan_out * reduce_s + q.machine.copy.time_s(st.segment_bytes));
  const double inner_s = inner_children > 0 ? h.stage_s(inner_children + 1, inner_children + 1,
                                                        inner_children * reduce_s)
                                            : 0;
  // With more than two children, the segments of the first two arrive before all other segments, if
  // messages wait for their receive or inner ranks have as much work as the root. Little goes down
  // before nearly everything has come up.
  const bool apart = fan_out > 2 && (inner_children + 1 >= fan_out || waits);
  double apart_s = apart ? 2 * fan_out * h.busy_s : 0;
  // Below the root, each of the first ranks of the root's node has a child on another node; the
  // first ranks of another node also have a parent there.
  if (const int nodes = (p - 1) / r.per_node + 1; r.per_node > 1 && nodes > 1 && fan_out > 1) {
    const int children = std::min(r.per_node, int(std::bit_width(unsigned(nodes))));
    apart_s = std::max(apart_s, (nodes > 2 ? 2 * children + 1 : children) * h.busy_s);
  }
  return up_s + down_s + (st.segments - 1) * std::max({root_s, inner_s, apart_s});
}

inline constexpr algorithm reduce_broadcast{
    .op = collective::all_reduce,
    .name = "reduce_broadcast",
    .source = "Pjesivac-Grbovic et al. 2007, doi:10.1007/s10586-007-0012-0",
    .needs = {},
    .scratch = {.messages = 2},
    .parameter_list = {parameter{"fan_out", {2, 1, 8}}, segment_bytes_parameter},
    .build = build_reduce_broadcast,
    .cost_s = cost_reduce_broadcast};

}  // namespace railpass::collectives::all_reduce

#endif

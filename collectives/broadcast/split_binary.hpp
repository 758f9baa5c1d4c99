// SPDX-License-Identifier: BSL-1.0
//
// Split binary tree: the ranks below the root form two binary trees of nearly equal size. The left
// one is given the first half of the message, the right one the second half, segment by segment.
// Then each left rank and its counterpart on the right exchange halves.
// p = 8: left 1..4, right 5..7: 0->1 0->5, then 1->2 1->3 5->6 5->7, then 2->4, and the exchanges
// 1<->5, 2<->6, 3<->7. Rank 4 has no counterpart: it gets its other half from the root.
//
// Cost, in S segments of m bytes: log2 p (alpha + 2 m beta) + 3/2 n beta.
// Good when: messages are long and a pipeline would be too long to fill.
// Poor when: messages are short (one more message than a binary tree).
// Needs: nothing.
// Source: Pjesivac-Grbovic et al.: Performance analysis of MPI collective operations, Cluster
// Computing 10(2), 2007, doi:10.1007/s10586-007-0012-0.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, split_binary)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_SPLIT_BINARY)
#define RAILPASS_COLLECTIVES_BROADCAST_SPLIT_BINARY

#include "collectives/parts.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_split_binary(const shape& s, const parameters& values) {
  builder b(s, values[0]);
  const int left = s.num_ranks / 2, right = s.num_ranks - 1 - left;  // left is right or one more
  const auto half = [](int side) { return block_range{.parts = 2, .first = side}; };
  if (s.rank == 0) {
    b.send(buffer::output, half(0), 1, {}, by_segments);
    const step_id to_right =
        right > 0 ? b.send(buffer::output, half(1), 1 + left, {}, by_segments) : no_step;
    if (left > right) b.send(buffer::output, half(1), left, {whole(to_right)}, by_segments);
    return b.finish();
  }
  const int side = s.rank > left ? 1 : 0;
  const int size = side == 0 ? left : right, offset = side == 0 ? 1 : 1 + left;
  const int i = s.rank - offset;
  const step_id arrived =
      b.receive(buffer::output, half(side), i == 0 ? 0 : offset + (i - 1) / 2, {}, by_segments);
  // The exchange does not start before the own half is complete, and its messages queue behind
  // those of the tree, which would else be held up on every level.
  std::vector<after> tree{whole(arrived)};
  for (const int child : {2 * i + 1, 2 * i + 2})
    if (child < size)
      tree.push_back(
          posted(b.send(buffer::output, half(side), offset + child, {each(arrived)}, by_segments)));

  const bool paired = side == 1 || i < right;
  const int counterpart = side == 1 ? 1 + i : paired ? 1 + left + i : 0;
  b.receive(buffer::output, half(1 - side), counterpart, {whole(arrived)}, by_segments);
  if (paired) b.send(buffer::output, half(side), counterpart, tree, by_segments);
  return b.finish();
}

inline double cost_split_binary(const cost_query& q, const parameters& values) {
  const stream st(q.bytes / 2, values[0], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  const int left = q.num_ranks / 2, right = q.num_ranks - 1 - left;
  // To the heads of the trees, through them, and the exchange.
  const double root_s = r.far.stage_s(right > 0 ? 2 : 1, 0);
  const double inner_s = left > 1 ? r.far.stage_s(std::min(2, left - 1), 1) : 0;
  const double to_left_s = r.far.one_way_s + binary_depth_s(left, r);
  const double to_right_s =
      right > 0 ? r.far.busy_s + r.far.one_way_s + binary_depth_s(right, r) : 0;
  const double stage_s = std::max({root_s, inner_s, r.per_node > 1 ? binary_stage_s(left, r) : 0});
  const double tree_s = std::max(to_left_s, to_right_s) + (st.segments - 1) * stage_s;
  if (right == 0) return tree_s + st.segments * r.far.busy_s;
  const double exchange_s = left < r.per_node
                                ? r.near.stage_s(1, 1)
                                : std::max(r.far.stage_s(1, 1), r.per_node * r.far.busy_s);
  return tree_s + r.exchange_s(left) + (st.segments - 1) * exchange_s;
}

inline constexpr algorithm split_binary{
    .op = collective::broadcast,
    .name = "split_binary",
    .source = "Pjesivac-Grbovic et al. 2007, doi:10.1007/s10586-007-0012-0",
    .needs = {},
    .parameter_list = {segment_bytes_parameter},
    .build = build_split_binary,
    .cost_s = cost_split_binary};

}  // namespace railpass::collectives::broadcast

#endif

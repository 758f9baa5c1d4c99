// SPDX-License-Identifier: BSL-1.0
//
// Reduce and broadcast on one k-nomial tree. Write the ranks in base k: a rank's parent is the rank
// with its last digit other than 0 made 0. Sums go up and the result comes down, segment by
// segment. p = 8, radix 4: 1->0 2->0 3->0 5->4 6->4 7->4, then 4->0, 0->4, and 0->1 0->2 0->3 4->5
// 4->6 4->7.
//
// Cost: 2 ceil(log_k p) (alpha + (k-1) n beta) + ceil(log_k p) (k-1) n gamma.
// Good when: messages are short, p is not a power of two and the start of a message is cheap
// against its flight. Poor when: n beta dominates. Needs: nothing; rank order is kept. Source:
// Graham et al.: Cheetah: a framework for scalable hierarchical collective operations, CCGrid 2011,
// doi:10.1109/CCGrid.2011.42.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_reduce, knomial)
#elif !defined(RAILPASS_COLLECTIVES_ALL_REDUCE_KNOMIAL)
#define RAILPASS_COLLECTIVES_ALL_REDUCE_KNOMIAL

#include "collectives/trees.hpp"

namespace railpass::collectives::all_reduce {

inline schedule build_knomial(const shape& s, const parameters& values) {
  return build_tree_all_reduce(s, {{knomial_tree(s.rank, s.num_ranks, values[0]), {}, true}},
                               values[1]);
}

inline double cost_knomial(const cost_query& q, const parameters& values) {
  const stream st(q.bytes, values[1], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  const double reduce_s = q.machine.reduce.time_s(st.segment_bytes);
  return knomial_reduce_depth_s(q.num_ranks, values[0], r, reduce_s) +
         knomial_depth_s(q.num_ranks, values[0], r) +
         // Messages down wait for messages up, and delay them.
         4.0 / 3 * (st.segments - 1) * knomial_reduce_root_s(q.num_ranks, values[0], r, reduce_s);
}

inline constexpr algorithm knomial{
    .op = collective::all_reduce,
    .name = "knomial",
    .source = "Graham et al. 2011, doi:10.1109/CCGrid.2011.42",
    .needs = {},
    .scratch = {.messages = 2},
    .parameter_list = {parameter{"radix", {4, 2, 3, 8}}, segment_bytes_parameter},
    .build = build_knomial,
    .cost_s = cost_knomial};

}  // namespace railpass::collectives::all_reduce

#endif

// SPDX-License-Identifier: BSL-1.0
//
// Linear: every other rank sends its input to the root, which adds the contributions up as they
// come in rank order. p = 8: 1->0, 2->0, 3->0, 4->0, 5->0, 6->0, 7->0.
//
// Cost: alpha + (p-1) n beta + (p-1) n gamma (the root's link carries everything).
// Good when: there are few ranks, or messages so short that only the number of hops counts.
// Poor when: (p-1) n beta is felt.
// Needs: at most 256 ranks (a step for each at the root); rank order is kept.
// Source: Pjesivac-Grbovic et al.: Performance analysis of MPI collective operations, Cluster
// Computing 10(2), 2007, doi:10.1007/s10586-007-0012-0.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce, linear)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_LINEAR)
#define RAILPASS_COLLECTIVES_REDUCE_LINEAR

#include "collectives/trees.hpp"

namespace railpass::collectives::reduce {

inline schedule build_linear(const shape& s, const parameters&) {
  return build_tree_reduce(s, {{range_tree(s.rank, s.num_ranks, s.num_ranks)}}, 0);
}

inline double cost_linear(const cost_query& q, const parameters&) {
  const routes r(q, q.bytes);
  const double reduce_s = q.machine.reduce.time_s(q.bytes);
  const int from_near = r.per_node - 1, from_far = q.num_ranks - r.per_node;
  return r.far.one_way_s + std::max(0, from_far - 1) * r.far.stage_s(0, 1, reduce_s) +
         (from_far > 0 ? from_near : from_near - 1) * r.near.stage_s(0, 1, reduce_s) + reduce_s +
         q.machine.copy.time_s(q.bytes);
}

inline constexpr algorithm linear{
    .op = collective::reduce,
    .name = "linear",
    .source = "Pjesivac-Grbovic et al. 2007, doi:10.1007/s10586-007-0012-0",
    .needs = {.max_ranks = 256},
    .scratch = {.messages = 2},
    .build = build_linear,
    .cost_s = cost_linear};

}  // namespace railpass::collectives::reduce

#endif

// SPDX-License-Identifier: BSL-1.0
//
// Binomial tree: partial sums go up, in every round half of the ranks that are left send theirs.
// p = 8: 1->0 3->2 5->4 7->6, then 2->0 6->4, then 4->0. With segments, the rounds of one segment
// overlap those of the next. Subtrees are ranges of ranks, so the sums are in rank order.
//
// Cost: ceil(log2 p) * (alpha + n beta + n gamma) unsegmented.
// Good when: messages are short. Poor when: n beta dominates (log2 p messages over the root's
// link). Needs: nothing; rank order is kept. Source: Thakur, Rabenseifner, Gropp: Optimization of
// Collective Communication Operations in MPICH, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce, binomial)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_BINOMIAL)
#define RAILPASS_COLLECTIVES_REDUCE_BINOMIAL

#include "collectives/trees.hpp"

namespace railpass::collectives::reduce {

inline schedule build_binomial(const shape& s, const parameters& values) {
  return build_tree_reduce(s, {{binomial_tree(s.rank, s.num_ranks)}}, values[0]);
}

inline double cost_binomial(const cost_query& q, const parameters& values) {
  const stream st(q.bytes, values[0], q.unit_bytes);
  const routes r(q, st.segment_bytes);
  const double reduce_s = q.machine.reduce.time_s(st.segment_bytes);
  return knomial_reduce_depth_s(q.num_ranks, 2, r, reduce_s) +
         q.machine.copy.time_s(st.segment_bytes) +
         (st.segments - 1) * knomial_reduce_root_s(q.num_ranks, 2, r, reduce_s);
}

inline constexpr algorithm binomial{.op = collective::reduce,
                                    .name = "binomial",
                                    .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
                                    .needs = {},
                                    .scratch = {.messages = 2},
                                    .parameter_list = {segment_bytes_parameter},
                                    .build = build_binomial,
                                    .cost_s = cost_binomial};

}  // namespace railpass::collectives::reduce

#endif

// SPDX-License-Identifier: BSL-1.0
//
// k-nomial tree: the ranks of a subtree notify its root when all of them have arrived. When rank 0
// has heard of all ranks, it notifies them in the opposite order. p = 8, radix 2: 1->0 3->2 5->4
// 7->6, 2->0 6->4, 4->0, then 0->4, 0->2 4->6, 0->1 2->3 4->5 6->7.
//
// Cost: 2 ceil(log_radix p) alpha.
// Good when: messages delay each other, because only p - 1 are sent each way, one at a time to
// each rank but the parents. Poor when: the network takes many at once.
// Needs: nothing.
// Source: Graham et al.: Cheetah: A Framework for Scalable Hierarchical Collective Operations,
// CCGrid 2011, doi:10.1109/CCGrid.2011.42.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(barrier, knomial)
#elif !defined(RAILPASS_COLLECTIVES_BARRIER_KNOMIAL)
#define RAILPASS_COLLECTIVES_BARRIER_KNOMIAL

#include "collectives/trees.hpp"

namespace railpass::collectives::barrier {

inline schedule build_knomial(const shape& s, const parameters& values) {
  builder b(s);
  const tree_position tree = knomial_tree(s.rank, s.num_ranks, values[0]);
  const block_range own{.parts = s.num_ranks, .first = s.rank};
  std::vector<after> heard;
  const auto hear = [&](int peer) {
    heard.push_back(whole(b.receive(buffer::output, {.parts = s.num_ranks, .first = peer}, peer)));
  };
  for (const int child : tree.children) hear(child);
  if (tree.parent >= 0) {
    b.send(buffer::input, own, tree.parent, heard);
    hear(tree.parent);
  }
  // The largest subtree first.
  for (auto child = tree.children.rbegin(); child != tree.children.rend(); ++child)
    b.send(buffer::input, own, *child, heard);
  return b.finish();
}

inline double cost_knomial(const cost_query& q, const parameters& values) {
  const routes r(q, 1);
  return knomial_reduce_depth_s(q.num_ranks, values[0], r, 0) +
         knomial_depth_s(q.num_ranks, values[0], r);
}

inline constexpr algorithm knomial{.op = collective::barrier,
                                   .name = "knomial",
                                   .source = "Graham et al. 2011, doi:10.1109/CCGrid.2011.42",
                                   .needs = {},
                                   .parameter_list = {parameter{"radix", {2, 3, 4, 8}}},
                                   .build = build_knomial,
                                   .cost_s = cost_knomial};

}  // namespace railpass::collectives::barrier

#endif

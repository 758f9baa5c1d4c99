// SPDX-License-Identifier: BSL-1.0
//
// Shared memory, a tree: parents see that their children have arrived, and notify their own
// parents; after all arrivals the root notifies its children, and these theirs. p = 8, fan_out 4:
// 2, 4, 6 and 7 publish; 1, 3 and 5 fetch 2's, 4's and 6's and publish; 0 fetches from 1, 3, 5 and
// 7, and publishes what these fetch; 1, 3 and 5 publish it for 2, 4 and 6.
//
// Cost: (fan_out + 1) lines from cache to cache for each level.
// Good when: many ranks share a node. Poor when: they are few.
// Needs: memory that all ranks share; 9 to 256 ranks.
// Source: Graham, Shipman: MPI support for multi-core architectures: optimized shared memory
// collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(barrier, shared_tree)
#elif !defined(RAILPASS_COLLECTIVES_BARRIER_SHARED_TREE)
#define RAILPASS_COLLECTIVES_BARRIER_SHARED_TREE

#include "collectives/shared.hpp"

namespace railpass::collectives::barrier {

inline schedule build_in_shared_tree(const shape& s, const parameters& values,
                                     tree_position (*tree_of)(const shape&, const parameters&)) {
  builder b(s, 0, 2);
  const tree_position tree = tree_of(s, values);
  const auto bytes_of = [&](int first, int end) {
    return block_range{.parts = s.num_ranks, .first = first, .count = end - first};
  };
  const int end = range_end(s.rank, [&](int rank) {
    shape other = s;
    other.rank = rank;
    return tree_of(other, values);
  });
  std::vector<after> come{
      each(b.copy(buffer::input, buffer::output, bytes_of(s.rank, s.rank + 1)))};
  for (std::size_t k = 0; k < tree.children.size(); ++k) {
    const int child = tree.children[k];
    const int child_end = k + 1 < tree.children.size() ? tree.children[k + 1] : end;
    come.push_back(each(b.fetch(child, 0, buffer::output, bytes_of(child, child_end))));
  }
  const block_range all = bytes_of(0, s.num_ranks);
  if (s.rank == 0) {
    b.publish(buffer::output, all, 1, come);
    return b.finish();
  }
  const step_id told = b.publish(buffer::output, bytes_of(s.rank, end), 0, come);
  const step_id heard = b.fetch(tree.parent, 1, buffer::output, all, {each(told)});
  if (!tree.children.empty()) b.publish(buffer::output, all, 1, {each(heard)});
  return b.finish();
}
inline schedule build_shared_tree(const shape& s, const parameters& values) {
  return build_in_shared_tree(s, values, shared_tree_of);
}

inline double cost_shared_tree(const cost_query& q, const parameters& values) {
  const shared_tree_times t(q, values, 1);
  return t.up_first_s + t.down_first_s;
}

inline constexpr algorithm shared_tree{.op = collective::barrier,
                                       .name = "shared_tree",
                                       .source = shared_source,
                                       .needs = shared_tree_needs,
                                       .parameter_list = {shared_fan_out_parameter},
                                       .build = build_shared_tree,
                                       .cost_s = cost_shared_tree};

}  // namespace railpass::collectives::barrier

#endif

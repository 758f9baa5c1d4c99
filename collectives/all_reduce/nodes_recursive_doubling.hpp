// SPDX-License-Identifier: BSL-1.0
//
// On nodes: each adds up, the leaders exchange their sums by recursive doubling, and pass the
// result on.
//
// Cost: as reduce postal_tree within a node, recursive_doubling across nodes, and
// broadcast postal_tree within a node.
// Good when: messages are short. Poor when: they are long.
// Needs: several nodes, and ranks that share one; rank order is kept.
// Source: Zhu, Goodell, Gropp, Thakur: Hierarchical collectives in MPICH2, EuroPVM/MPI 2009,
// doi:10.1007/978-3-642-03770-2_41; lanes: Traeff, doi:10.48550/arXiv.1910.13373.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_reduce, nodes_recursive_doubling)
#elif !defined(RAILPASS_COLLECTIVES_ALL_REDUCE_NODES_RECURSIVE_DOUBLING)
#define RAILPASS_COLLECTIVES_ALL_REDUCE_NODES_RECURSIVE_DOUBLING

#include "collectives/all_reduce/recursive_doubling.hpp"
#include "collectives/broadcast/postal_tree.hpp"
#include "collectives/composed.hpp"
#include "collectives/reduce/postal_tree.hpp"

namespace railpass::collectives::all_reduce {

inline schedule build_nodes_recursive_doubling(const shape& s, const parameters& values) {
  return build_all_reduce_on_nodes<reduce::postal_tree, recursive_doubling, broadcast::postal_tree>(
      s, values[0], 0);
}

inline double cost_nodes_recursive_doubling(const cost_query& q, const parameters& values) {
  levels all(q, values[0], 0);
  all.inside(reduce::postal_tree, q.bytes);
  all.across(recursive_doubling, q.bytes);
  all.inside(broadcast::postal_tree, q.bytes);
  return all.total_s();
}

inline constexpr algorithm nodes_recursive_doubling{.op = collective::all_reduce,
                                                    .name = "nodes_recursive_doubling",
                                                    .source = lanes_source,
                                                    .needs = {.max_nodes = any_nodes},
                                                    .scratch = {.messages = 3},
                                                    .parameter_list = {leaders_parameter},
                                                    .build = build_nodes_recursive_doubling,
                                                    .cost_s = cost_nodes_recursive_doubling};

}  // namespace railpass::collectives::all_reduce

#endif

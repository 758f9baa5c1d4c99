// SPDX-License-Identifier: BSL-1.0
//
// On nodes: a postal tree within each node, and one of the leaders. With segments both work at
// once.
//
// Cost: as postal_tree within a node, and then across nodes.
// Good when: messages are short. Poor when: they are long.
// Needs: several nodes, and ranks that share one. Rank order is kept.
// Source: Zhu, Goodell, Gropp, Thakur: Hierarchical collectives in MPICH2, EuroPVM/MPI 2009,
// doi:10.1007/978-3-642-03770-2_41.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce, nodes_postal_tree)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_NODES_POSTAL_TREE)
#define RAILPASS_COLLECTIVES_REDUCE_NODES_POSTAL_TREE

#include "collectives/composed.hpp"
#include "collectives/reduce/postal_tree.hpp"

namespace railpass::collectives::reduce {

inline schedule build_nodes_postal_tree(const shape& s, const parameters& values) {
  return build_reduce_on_nodes<postal_tree, postal_tree>(s, values[0]);
}

inline double cost_nodes_postal_tree(const cost_query& q, const parameters& values) {
  levels all(q, 1, values[0]);
  all.inside(postal_tree, q.bytes);
  all.across(postal_tree, q.bytes);
  return all.total_s();
}

inline constexpr algorithm nodes_postal_tree{.op = collective::reduce,
                                             .name = "nodes_postal_tree",
                                             .source = nodes_source,
                                             .needs = {.max_nodes = any_nodes},
                                             .scratch = {.messages = 4},
                                             .parameter_list = {level_segments_parameter},
                                             .build = build_nodes_postal_tree,
                                             .cost_s = cost_nodes_postal_tree};

}  // namespace railpass::collectives::reduce

#endif

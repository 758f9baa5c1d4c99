// SPDX-License-Identifier: BSL-1.0
//
// On nodes: a postal tree of the leaders, and one within each node. With segments both work at
// once.
//
// Cost: as postal_tree across nodes and then within one; each message crosses the network once
// per node.
// Good when: messages are short. Poor when: they are long.
// Needs: several nodes, and ranks that share one.
// Source: Zhu, Goodell, Gropp, Thakur: Hierarchical collectives in MPICH2, EuroPVM/MPI 2009,
// doi:10.1007/978-3-642-03770-2_41; lanes: Traeff, doi:10.48550/arXiv.1910.13373.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, nodes_postal_tree)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_NODES_POSTAL_TREE)
#define RAILPASS_COLLECTIVES_BROADCAST_NODES_POSTAL_TREE

#include "collectives/broadcast/postal_tree.hpp"
#include "collectives/composed.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_nodes_postal_tree(const shape& s, const parameters& values) {
  return build_broadcast_on_nodes<postal_tree, postal_tree>(s, values[0], values[1]);
}

inline double cost_nodes_postal_tree(const cost_query& q, const parameters& values) {
  levels all(q, values[0], values[1]);
  all.across(postal_tree, q.bytes);
  all.inside(postal_tree, q.bytes);
  return all.total_s();
}

inline constexpr algorithm nodes_postal_tree{
    .op = collective::broadcast,
    .name = "nodes_postal_tree",
    .source = lanes_source,
    .needs = {.max_nodes = any_nodes},
    .parameter_list = {leaders_parameter, level_segments_parameter},
    .build = build_nodes_postal_tree,
    .cost_s = cost_nodes_postal_tree};

}  // namespace railpass::collectives::broadcast

#endif

// SPDX-License-Identifier: BSL-1.0
//
// On nodes: two binary trees of the leaders and two within each node, for a half of the message
// each. Segments go down all of them at once.
//
// Cost: as double_binary_tree across nodes, and a segment within one.
// Good when: messages are long. Poor when: they are short.
// Needs: several nodes, and ranks that share one.
// Source: Zhu, Goodell, Gropp, Thakur: Hierarchical collectives in MPICH2, EuroPVM/MPI 2009,
// doi:10.1007/978-3-642-03770-2_41.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, nodes_double_binary_tree)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_NODES_DOUBLE_BINARY_TREE)
#define RAILPASS_COLLECTIVES_BROADCAST_NODES_DOUBLE_BINARY_TREE

#include "collectives/broadcast/double_binary_tree.hpp"
#include "collectives/composed.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_nodes_double_binary_tree(const shape& s, const parameters& values) {
  return build_broadcast_on_nodes<double_binary_tree, double_binary_tree>(s, 1, values[0]);
}

inline double cost_nodes_double_binary_tree(const cost_query& q, const parameters& values) {
  levels all(q, 1, values[0]);
  all.across(double_binary_tree, q.bytes);
  all.inside(double_binary_tree, q.bytes);
  return all.total_s();
}

inline constexpr algorithm nodes_double_binary_tree{.op = collective::broadcast,
                                                    .name = "nodes_double_binary_tree",
                                                    .source = nodes_source,
                                                    .needs = {.max_nodes = any_nodes},
                                                    .parameter_list = {stream_segments_parameter},
                                                    .build = build_nodes_double_binary_tree,
                                                    .cost_s = cost_nodes_double_binary_tree};

}  // namespace railpass::collectives::broadcast

#endif

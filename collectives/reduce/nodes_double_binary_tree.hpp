// SPDX-License-Identifier: BSL-1.0
//
// On nodes: two binary trees within each node and two of the leaders, for a half of the message
// each. Segments go up all of them at once.
//
// Cost: as double_binary_tree across nodes, and a segment within one.
// Good when: messages are long. Poor when: they are short.
// Needs: several nodes, and ranks that share one; a commutative operation.
// Source: Zhu, Goodell, Gropp, Thakur: Hierarchical collectives in MPICH2, EuroPVM/MPI 2009,
// doi:10.1007/978-3-642-03770-2_41.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce, nodes_double_binary_tree)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_NODES_DOUBLE_BINARY_TREE)
#define RAILPASS_COLLECTIVES_REDUCE_NODES_DOUBLE_BINARY_TREE

#include "collectives/composed.hpp"
#include "collectives/reduce/double_binary_tree.hpp"

namespace railpass::collectives::reduce {

inline schedule build_nodes_double_binary_tree(const shape& s, const parameters& values) {
  return build_reduce_on_nodes<double_binary_tree, double_binary_tree>(s, values[0]);
}

inline double cost_nodes_double_binary_tree(const cost_query& q, const parameters& values) {
  levels all(q, 1, values[0]);
  all.inside(double_binary_tree, q.bytes);
  all.across(double_binary_tree, q.bytes);
  return all.total_s();
}

inline constexpr algorithm nodes_double_binary_tree{
    .op = collective::reduce,
    .name = "nodes_double_binary_tree",
    .source = nodes_source,
    .needs = {.commutative = true, .max_nodes = any_nodes},
    .scratch = {.messages = 4},
    .parameter_list = {stream_segments_parameter},
    .build = build_nodes_double_binary_tree,
    .cost_s = cost_nodes_double_binary_tree};

}  // namespace railpass::collectives::reduce

#endif

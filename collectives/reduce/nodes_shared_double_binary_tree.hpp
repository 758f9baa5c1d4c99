// SPDX-License-Identifier: BSL-1.0
//
// On nodes: in the memory of each every rank adds up its block for the leader, and two binary trees
// of the leaders go on, for a half of the message each, in segments.
//
// Cost: as shared_direct within a node, and double_binary_tree across nodes.
// Good when: messages are some KiB long. Poor when: they are long enough for levels to overlap.
// Needs: several nodes of up to 16 ranks, and memory that the ranks of each share; a commutative
// operation.
// Source: Zhu, Goodell, Gropp, Thakur: Hierarchical collectives in MPICH2, EuroPVM/MPI 2009,
// doi:10.1007/978-3-642-03770-2_41; Graham, Shipman: MPI support for multi-core architectures:
// optimized shared memory collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce, nodes_shared_double_binary_tree)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_NODES_SHARED_DOUBLE_BINARY_TREE)
#define RAILPASS_COLLECTIVES_REDUCE_NODES_SHARED_DOUBLE_BINARY_TREE

#include "collectives/composed.hpp"
#include "collectives/reduce/double_binary_tree.hpp"
#include "collectives/reduce/shared_direct.hpp"
#include "collectives/shared.hpp"

namespace railpass::collectives::reduce {

inline schedule build_nodes_shared_double_binary_tree(const shape& s, const parameters& values) {
  return build_reduce_on_nodes<shared_direct, double_binary_tree>(s, values[0]);
}

inline double cost_nodes_shared_double_binary_tree(const cost_query& q, const parameters& values) {
  levels all(q, 1, values[0]);
  all.inside_once(shared_direct, q.bytes);
  all.across(double_binary_tree, q.bytes);
  return all.total_s();
}

inline constexpr algorithm nodes_shared_double_binary_tree{
    .op = collective::reduce,
    .name = "nodes_shared_double_binary_tree",
    .source = nodes_in_memory_source,
    .needs = {.commutative = true,
              .shared_memory = true,
              .max_nodes = any_nodes,
              .max_ranks_per_node = shared_blocks_needs.max_ranks},
    .scratch = {.messages = 4},
    .parameter_list = {stream_segments_parameter},
    .build = build_nodes_shared_double_binary_tree,
    .cost_s = cost_nodes_shared_double_binary_tree};

}  // namespace railpass::collectives::reduce

#endif

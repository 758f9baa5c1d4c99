// SPDX-License-Identifier: BSL-1.0
//
// On nodes: each adds up in a tree in its memory, and a postal tree of the leaders goes on.
//
// Cost: as shared_tree within a node, and postal_tree across nodes.
// Good when: many ranks share a node. Poor when: messages are long enough for levels to overlap.
// Needs: several nodes, and memory that the ranks of each share; rank order is kept.
// Source: Zhu, Goodell, Gropp, Thakur: Hierarchical collectives in MPICH2, EuroPVM/MPI 2009,
// doi:10.1007/978-3-642-03770-2_41; Graham, Shipman: MPI support for multi-core architectures:
// optimized shared memory collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce, nodes_shared_postal_tree)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_NODES_SHARED_POSTAL_TREE)
#define RAILPASS_COLLECTIVES_REDUCE_NODES_SHARED_POSTAL_TREE

#include "collectives/composed.hpp"
#include "collectives/reduce/postal_tree.hpp"
#include "collectives/reduce/shared_tree.hpp"
#include "collectives/shared.hpp"

namespace railpass::collectives::reduce {

inline schedule build_nodes_shared_postal_tree(const shape& s, const parameters& values) {
  return build_reduce_on_nodes<shared_tree, postal_tree>(s, 0, values);
}

inline double cost_nodes_shared_postal_tree(const cost_query& q, const parameters& values) {
  levels all(q, 1, 0);
  all.inside_once(shared_tree, values, q.bytes);
  all.across(postal_tree, q.bytes);
  return all.total_s();
}

inline constexpr algorithm nodes_shared_postal_tree{.op = collective::reduce,
                                                    .name = "nodes_shared_postal_tree",
                                                    .source = nodes_in_memory_source,
                                                    .needs = nodes_in_memory_needs,
                                                    .scratch = {.messages = 4},
                                                    .parameter_list = {shared_fan_out_parameter},
                                                    .build = build_nodes_shared_postal_tree,
                                                    .cost_s = cost_nodes_shared_postal_tree};

}  // namespace railpass::collectives::reduce

#endif

// SPDX-License-Identifier: BSL-1.0
//
// On nodes: a postal tree of the leaders, and within each node a tree in its memory, down which
// the message goes when the leader has all of it.
//
// Cost: as postal_tree across nodes, and shared_tree within one.
// Good when: many ranks share a node. Poor when: messages are long enough for levels to overlap.
// Needs: several nodes, and memory that the ranks of each share.
// Source: Zhu, Goodell, Gropp, Thakur: Hierarchical collectives in MPICH2, EuroPVM/MPI 2009,
// doi:10.1007/978-3-642-03770-2_41; Graham, Shipman: MPI support for multi-core architectures:
// optimized shared memory collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, nodes_shared_postal_tree)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_NODES_SHARED_POSTAL_TREE)
#define RAILPASS_COLLECTIVES_BROADCAST_NODES_SHARED_POSTAL_TREE

#include "collectives/broadcast/postal_tree.hpp"
#include "collectives/broadcast/shared_tree.hpp"
#include "collectives/composed.hpp"
#include "collectives/shared.hpp"

namespace railpass::collectives::broadcast {

inline schedule build_nodes_shared_postal_tree(const shape& s, const parameters& values) {
  return build_broadcast_on_nodes<postal_tree, shared_tree>(s, 1, 0, values);
}

inline double cost_nodes_shared_postal_tree(const cost_query& q, const parameters& values) {
  levels all(q, 1, 0);
  all.across(postal_tree, q.bytes);
  all.inside_once(shared_tree, values, q.bytes);
  return all.total_s();
}

inline constexpr algorithm nodes_shared_postal_tree{.op = collective::broadcast,
                                                    .name = "nodes_shared_postal_tree",
                                                    .source = nodes_in_memory_source,
                                                    .needs = nodes_in_memory_needs,
                                                    .parameter_list = {shared_fan_out_parameter},
                                                    .build = build_nodes_shared_postal_tree,
                                                    .cost_s = cost_nodes_shared_postal_tree};

}  // namespace railpass::collectives::broadcast

#endif

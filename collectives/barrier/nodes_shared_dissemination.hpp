// SPDX-License-Identifier: BSL-1.0
//
// On nodes: the ranks of each meet in a tree in its memory, the leaders disseminate that all have
// come, and show it to their nodes down the tree once more.
//
// Cost: (fan_out + 1) lines from cache to cache for each level of the tree, and dissemination
// across nodes.
// Good when: many ranks share a node. Poor when: they are few.
// Needs: several nodes, and memory that the ranks of each share.
// Source: Zhu, Goodell, Gropp, Thakur: Hierarchical collectives in MPICH2, EuroPVM/MPI 2009,
// doi:10.1007/978-3-642-03770-2_41; Graham, Shipman: MPI support for multi-core architectures:
// optimized shared memory collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(barrier, nodes_shared_dissemination)
#elif !defined(RAILPASS_COLLECTIVES_BARRIER_NODES_SHARED_DISSEMINATION)
#define RAILPASS_COLLECTIVES_BARRIER_NODES_SHARED_DISSEMINATION

#include "collectives/barrier/dissemination.hpp"
#include "collectives/barrier/shared_tree.hpp"
#include "collectives/broadcast/shared_tree.hpp"
#include "collectives/composed.hpp"
#include "collectives/reduce/shared_tree.hpp"
#include "collectives/shared.hpp"

namespace railpass::collectives::barrier {

inline schedule build_nodes_shared_dissemination(const shape& s, const parameters& values) {
  return build_barrier_in_memory<shared_tree, dissemination, broadcast::shared_tree>(s, values);
}

inline double cost_nodes_shared_dissemination(const cost_query& q, const parameters& values) {
  levels all(q, 1, 0);
  // The way down the first tree ends while the leaders disseminate.
  all.inside_once(reduce::shared_tree, values, 1);
  all.across(dissemination, 1);
  all.inside_once(broadcast::shared_tree, values, 1);
  return all.total_s();
}

inline constexpr algorithm nodes_shared_dissemination{.op = collective::barrier,
                                                      .name = "nodes_shared_dissemination",
                                                      .source = nodes_in_memory_source,
                                                      .needs = nodes_in_memory_needs,
                                                      .parameter_list = {shared_fan_out_parameter},
                                                      .build = build_nodes_shared_dissemination,
                                                      .cost_s = cost_nodes_shared_dissemination};

}  // namespace railpass::collectives::barrier

#endif

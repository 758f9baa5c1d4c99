// SPDX-License-Identifier: BSL-1.0
//
// On nodes: ranks notify their leader on arrival, the leaders disseminate among each other, and
// then notify their nodes.
//
// Cost: two messages within a node for each rank except the leader, and dissemination across
// nodes.
// Good when: messages within nodes are much quicker. Poor when: nodes have very many ranks.
// Needs: several nodes, and ranks that share one.
// Source: Zhu, Goodell, Gropp, Thakur: Hierarchical collectives in MPICH2, EuroPVM/MPI 2009,
// doi:10.1007/978-3-642-03770-2_41.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(barrier, nodes_dissemination)
#elif !defined(RAILPASS_COLLECTIVES_BARRIER_NODES_DISSEMINATION)
#define RAILPASS_COLLECTIVES_BARRIER_NODES_DISSEMINATION

#include "collectives/barrier/dissemination.hpp"
#include "collectives/barrier/linear.hpp"
#include "collectives/composed.hpp"

namespace railpass::collectives::barrier {

inline schedule build_nodes_dissemination(const shape& s, const parameters&) {
  return build_barrier_on_nodes<dissemination>(s);
}

inline double cost_nodes_dissemination(const cost_query& q, const parameters&) {
  levels all(q, 1, 0);
  all.inside(linear, 1);  // there and back again
  all.across(dissemination, 1);
  return all.total_s();
}

inline constexpr algorithm nodes_dissemination{.op = collective::barrier,
                                               .name = "nodes_dissemination",
                                               .source = nodes_source,
                                               .needs = {.max_nodes = any_nodes},
                                               .build = build_nodes_dissemination,
                                               .cost_s = cost_nodes_dissemination};

}  // namespace railpass::collectives::barrier

#endif

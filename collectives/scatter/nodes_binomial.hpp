// SPDX-License-Identifier: BSL-1.0
//
// On nodes: a binomial tree of the leaders, and one within each node.
//
// Cost: as binomial across nodes with the blocks of a node as one, and then within a node.
// Good when: blocks are short. Poor when: they are long.
// Needs: several nodes, and ranks that share one.
// Source: Zhu, Goodell, Gropp, Thakur: Hierarchical collectives in MPICH2, EuroPVM/MPI 2009,
// doi:10.1007/978-3-642-03770-2_41.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(scatter, nodes_binomial)
#elif !defined(RAILPASS_COLLECTIVES_SCATTER_NODES_BINOMIAL)
#define RAILPASS_COLLECTIVES_SCATTER_NODES_BINOMIAL

#include "collectives/composed.hpp"
#include "collectives/scatter/binomial.hpp"

namespace railpass::collectives::scatter {

inline schedule build_nodes_binomial(const shape& s, const parameters&) {
  return build_scatter_on_nodes<binomial, binomial>(s);
}

inline double cost_nodes_binomial(const cost_query& q, const parameters&) {
  levels all(q, 1, 0);
  all.across(binomial, q.bytes);
  all.inside(binomial, q.bytes * all.per_node() / q.num_ranks);
  return all.total_s();
}

inline constexpr algorithm nodes_binomial{.op = collective::scatter,
                                          .name = "nodes_binomial",
                                          .source = nodes_source,
                                          .needs = {.max_nodes = any_nodes},
                                          .scratch = {.messages = 2},
                                          .spans_blocks = true,
                                          .build = build_nodes_binomial,
                                          .cost_s = cost_nodes_binomial};

}  // namespace railpass::collectives::scatter

#endif

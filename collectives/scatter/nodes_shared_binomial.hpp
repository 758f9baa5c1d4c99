// SPDX-License-Identifier: BSL-1.0
//
// On nodes: a binomial tree of the leaders, which show the blocks of their nodes in memory.
//
// Cost: as shared_flat within a node, and binomial across nodes with the blocks of a node
// as one.
// Good when: many ranks share a node. Poor when: blocks are long.
// Needs: several nodes, and memory that the ranks of each, at most 16, share.
// Source: Zhu, Goodell, Gropp, Thakur: Hierarchical collectives in MPICH2, EuroPVM/MPI 2009,
// doi:10.1007/978-3-642-03770-2_41; Graham, Shipman: MPI support for multi-core architectures:
// optimized shared memory collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(scatter, nodes_shared_binomial)
#elif !defined(RAILPASS_COLLECTIVES_SCATTER_NODES_SHARED_BINOMIAL)
#define RAILPASS_COLLECTIVES_SCATTER_NODES_SHARED_BINOMIAL

#include "collectives/composed.hpp"
#include "collectives/scatter/binomial.hpp"
#include "collectives/scatter/shared_flat.hpp"
#include "collectives/shared.hpp"

namespace railpass::collectives::scatter {

inline schedule build_nodes_shared_binomial(const shape& s, const parameters&) {
  return build_scatter_on_nodes<binomial, shared_flat>(s);
}

inline double cost_nodes_shared_binomial(const cost_query& q, const parameters&) {
  levels all(q, 1, 0);
  all.across(binomial, q.bytes);
  all.inside_once(shared_flat, q.bytes * all.per_node() / q.num_ranks);
  return all.total_s();
}

inline constexpr algorithm nodes_shared_binomial{
    .op = collective::scatter,
    .name = "nodes_shared_binomial",
    .source = nodes_in_memory_source,
    .needs = {.shared_memory = true,
              .max_nodes = any_nodes,
              .max_ranks_per_node = shared_blocks_needs.max_ranks},
    .scratch = {.messages = 2},
    .spans_blocks = true,
    .build = build_nodes_shared_binomial,
    .cost_s = cost_nodes_shared_binomial};

}  // namespace railpass::collectives::scatter

#endif

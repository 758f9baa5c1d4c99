// SPDX-License-Identifier: BSL-1.0
//
// On nodes: leaders collect the blocks of their nodes in memory, and a binomial tree of them goes
// on.
//
// Cost: as shared_flat within a node, and binomial across nodes with the blocks of a node
// as one.
// Good when: many ranks share a node. Poor when: blocks are long.
// Needs: several nodes, and memory that the ranks of each, at most 64, share.
// Source: Zhu, Goodell, Gropp, Thakur: Hierarchical collectives in MPICH2, EuroPVM/MPI 2009,
// doi:10.1007/978-3-642-03770-2_41; Graham, Shipman: MPI support for multi-core architectures:
// optimized shared memory collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(gather, nodes_shared_binomial)
#elif !defined(RAILPASS_COLLECTIVES_GATHER_NODES_SHARED_BINOMIAL)
#define RAILPASS_COLLECTIVES_GATHER_NODES_SHARED_BINOMIAL

#include "collectives/composed.hpp"
#include "collectives/gather/binomial.hpp"
#include "collectives/gather/shared_flat.hpp"
#include "collectives/shared.hpp"

namespace railpass::collectives::gather {

inline schedule build_nodes_shared_binomial(const shape& s, const parameters&) {
  return build_gather_on_nodes<shared_flat, binomial>(s);
}

inline double cost_nodes_shared_binomial(const cost_query& q, const parameters&) {
  levels all(q, 1, 0);
  all.inside_once(shared_flat, q.bytes * all.per_node() / q.num_ranks);
  all.across(binomial, q.bytes);
  return all.total_s();
}

inline constexpr algorithm nodes_shared_binomial{
    .op = collective::gather,
    .name = "nodes_shared_binomial",
    .source = nodes_in_memory_source,
    .needs = {.shared_memory = true,
              .max_nodes = any_nodes,
              .max_ranks_per_node = shared_reads_needs.max_ranks},
    .scratch = {.messages = 2},
    .spans_blocks = true,
    .build = build_nodes_shared_binomial,
    .cost_s = cost_nodes_shared_binomial};

}  // namespace railpass::collectives::gather

#endif

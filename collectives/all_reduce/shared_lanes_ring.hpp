// SPDX-License-Identifier: BSL-1.0
//
// On nodes of equally many ranks: every rank sums its block of the node's inputs in shared memory,
// continues in a ring with the ranks of the same local rank on other nodes, and publishes the sum
// to its node.
//
// Cost: as reduce_scatter_block shared_flat within a node, a ring across nodes for each
// rank (the rings share the node's link), and all_gather shared_flat within a node.
// Good when: messages are long. Poor when: they are short.
// Needs: several nodes of equally many ranks, at most 16, which share memory; a commutative
// operation.
// Source: Zhu, Goodell, Gropp, Thakur: Hierarchical collectives in MPICH2, EuroPVM/MPI 2009,
// doi:10.1007/978-3-642-03770-2_41; Graham, Shipman: MPI support for multi-core architectures:
// optimized shared memory collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21;
// lanes: Traeff, doi:10.48550/arXiv.1910.13373.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_reduce, shared_lanes_ring)
#elif !defined(RAILPASS_COLLECTIVES_ALL_REDUCE_SHARED_LANES_RING)
#define RAILPASS_COLLECTIVES_ALL_REDUCE_SHARED_LANES_RING

#include "collectives/all_gather/shared_flat.hpp"
#include "collectives/all_reduce/ring.hpp"
#include "collectives/composed.hpp"
#include "collectives/reduce_scatter_block/shared_flat.hpp"
#include "collectives/shared.hpp"

namespace railpass::collectives::all_reduce {

inline schedule build_shared_lanes_ring(const shape& s, const parameters&) {
  return build_all_reduce_in_memory_lanes<reduce_scatter_block::shared_flat, ring,
                                          all_gather::shared_flat>(s);
}

inline double cost_shared_lanes_ring(const cost_query& q, const parameters&) {
  levels all(q, 0, 0);
  all.inside_once(reduce_scatter_block::shared_flat, q.bytes);
  all.across(ring, q.bytes);
  all.inside_once(all_gather::shared_flat, q.bytes);
  return all.total_s();
}

inline constexpr algorithm shared_lanes_ring{
    .op = collective::all_reduce,
    .name = "shared_lanes_ring",
    .source = nodes_in_memory_source,
    .needs = {.commutative = true,
              .shared_memory = true,
              .max_nodes = most_nodes_written_out,
              .equal_nodes = true,
              .max_ranks_per_node = shared_blocks_needs.max_ranks},
    .scratch = {.messages = 2},
    .build = build_shared_lanes_ring,
    .cost_s = cost_shared_lanes_ring};

}  // namespace railpass::collectives::all_reduce

#endif

// SPDX-License-Identifier: BSL-1.0
//
// On nodes: each adds up in a tree in its memory, the leaders go on in a ring, and the result goes
// down a tree in memory.
//
// Cost: as reduce shared_tree within a node, ring across nodes, and broadcast
// shared_tree within a node.
// Good when: messages are long and the network is slow. Poor when: they are short.
// Needs: several nodes, and memory that the ranks of each share; a commutative operation.
// Source: Zhu, Goodell, Gropp, Thakur: Hierarchical collectives in MPICH2, EuroPVM/MPI 2009,
// doi:10.1007/978-3-642-03770-2_41; Graham, Shipman: MPI support for multi-core architectures:
// optimized shared memory collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_reduce, nodes_shared_ring)
#elif !defined(RAILPASS_COLLECTIVES_ALL_REDUCE_NODES_SHARED_RING)
#define RAILPASS_COLLECTIVES_ALL_REDUCE_NODES_SHARED_RING

#include "collectives/all_reduce/ring.hpp"
#include "collectives/broadcast/shared_tree.hpp"
#include "collectives/composed.hpp"
#include "collectives/reduce/shared_tree.hpp"
#include "collectives/shared.hpp"

namespace railpass::collectives::all_reduce {

inline schedule build_nodes_shared_ring(const shape& s, const parameters& values) {
  return build_all_reduce_on_nodes<reduce::shared_tree, ring, broadcast::shared_tree>(
      s, 1, 0, values, values);
}

inline double cost_nodes_shared_ring(const cost_query& q, const parameters& values) {
  levels all(q, 1, 0);
  all.inside_once(reduce::shared_tree, values, q.bytes);
  all.across(ring, q.bytes);
  all.inside_once(broadcast::shared_tree, values, q.bytes);
  return all.total_s();
}

inline constexpr algorithm nodes_shared_ring{
    .op = collective::all_reduce,
    .name = "nodes_shared_ring",
    .source = nodes_in_memory_source,
    .needs = {.commutative = true, .shared_memory = true, .max_nodes = most_nodes_written_out},
    .scratch = {.messages = 3},
    .parameter_list = {shared_fan_out_parameter},
    .build = build_nodes_shared_ring,
    .cost_s = cost_nodes_shared_ring};

}  // namespace railpass::collectives::all_reduce

#endif

// SPDX-License-Identifier: BSL-1.0
//
// On nodes: leaders collect the blocks of their nodes in memory, exchange them by sparbit, and
// pass all on down a tree in memory.
//
// Cost: as gather shared_flat within a node, sparbit across nodes with the blocks of a
// node in one message, and broadcast shared_tree within a node.
// Good when: many ranks share a node. Poor when: blocks are long enough for levels to overlap.
// Needs: several nodes, and memory that the ranks of each, at most 64, share.
// Source: Zhu, Goodell, Gropp, Thakur: Hierarchical collectives in MPICH2, EuroPVM/MPI 2009,
// doi:10.1007/978-3-642-03770-2_41; Graham, Shipman: MPI support for multi-core architectures:
// optimized shared memory collectives, EuroPVM/MPI 2008, doi:10.1007/978-3-540-87475-1_21.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gather, nodes_shared_sparbit)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHER_NODES_SHARED_SPARBIT)
#define RAILPASS_COLLECTIVES_ALL_GATHER_NODES_SHARED_SPARBIT

#include "collectives/all_gather/sparbit.hpp"
#include "collectives/broadcast/shared_tree.hpp"
#include "collectives/composed.hpp"
#include "collectives/gather/shared_flat.hpp"
#include "collectives/shared.hpp"

namespace railpass::collectives::all_gather {

inline schedule build_nodes_shared_sparbit(const shape& s, const parameters& values) {
  return build_all_gather_on_nodes<gather::shared_flat, sparbit, broadcast::shared_tree>(s, 0,
                                                                                         values);
}

inline double cost_nodes_shared_sparbit(const cost_query& q, const parameters& values) {
  levels all(q, 1, 0);
  all.inside_once(gather::shared_flat, q.bytes * all.per_node() / q.num_ranks);
  all.across(sparbit, q.bytes);
  all.inside_once(broadcast::shared_tree, values, q.bytes);
  return all.total_s();
}

inline constexpr algorithm nodes_shared_sparbit{
    .op = collective::all_gather,
    .name = "nodes_shared_sparbit",
    .source = nodes_in_memory_source,
    .needs = {.shared_memory = true,
              .max_nodes = most_nodes_written_out,
              .max_ranks_per_node = shared_reads_needs.max_ranks},
    .scratch = {.messages = 0.5},
    .spans_blocks = true,
    .parameter_list = {shared_fan_out_parameter},
    .build = build_nodes_shared_sparbit,
    .cost_s = cost_nodes_shared_sparbit};

}  // namespace railpass::collectives::all_gather

#endif

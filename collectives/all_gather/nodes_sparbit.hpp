// SPDX-License-Identifier: BSL-1.0
//
// On nodes: the leaders collect the blocks of their nodes, exchange them by sparbit, and pass all
// on.
//
// Cost: as gather binomial within a node, sparbit across nodes with the blocks of a node in
// one message, and broadcast postal_tree within a node.
// Good when: blocks are short.
// Poor when: they are long, as all of them are passed on within nodes.
// Needs: several nodes, and ranks that share one.
// Source: Zhu, Goodell, Gropp, Thakur: Hierarchical collectives in MPICH2, EuroPVM/MPI 2009,
// doi:10.1007/978-3-642-03770-2_41.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gather, nodes_sparbit)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHER_NODES_SPARBIT)
#define RAILPASS_COLLECTIVES_ALL_GATHER_NODES_SPARBIT

#include "collectives/all_gather/sparbit.hpp"
#include "collectives/broadcast/postal_tree.hpp"
#include "collectives/composed.hpp"
#include "collectives/gather/binomial.hpp"

namespace railpass::collectives::all_gather {

inline schedule build_nodes_sparbit(const shape& s, const parameters& values) {
  return build_all_gather_on_nodes<gather::binomial, sparbit, broadcast::postal_tree>(s, values[0]);
}

inline double cost_nodes_sparbit(const cost_query& q, const parameters& values) {
  levels all(q, 1, values[0]);
  all.inside(gather::binomial, q.bytes * all.per_node() / q.num_ranks);
  all.across(sparbit, q.bytes);
  all.inside(broadcast::postal_tree, q.bytes);
  return all.total_s();
}

inline constexpr algorithm nodes_sparbit{.op = collective::all_gather,
                                         .name = "nodes_sparbit",
                                         .source = nodes_source,
                                         .needs = {.max_nodes = most_nodes_written_out},
                                         .scratch = {.messages = 0.5},
                                         .spans_blocks = true,
                                         .parameter_list = {level_segments_parameter},
                                         .build = build_nodes_sparbit,
                                         .cost_s = cost_nodes_sparbit};

}  // namespace railpass::collectives::all_gather

#endif

// SPDX-License-Identifier: BSL-1.0
//
// On nodes: each node sums its inputs, the leaders continue in a ring and pass the result on. If
// all ranks are leaders: reduce-scatter within nodes, rings across nodes, all-gather within nodes.
//
// Cost: as reduce binomial within a node, ring across nodes, and broadcast binomial
// within a node.
// Good when: messages are long. Poor when: they are short.
// Needs: several nodes, and ranks that share one; a commutative operation.
// Source: Zhu, Goodell, Gropp, Thakur: Hierarchical collectives in MPICH2, EuroPVM/MPI 2009,
// doi:10.1007/978-3-642-03770-2_41; lanes: Traeff, doi:10.48550/arXiv.1910.13373.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_reduce, nodes_ring)
#elif !defined(RAILPASS_COLLECTIVES_ALL_REDUCE_NODES_RING)
#define RAILPASS_COLLECTIVES_ALL_REDUCE_NODES_RING

#include "collectives/all_reduce/ring.hpp"
#include "collectives/broadcast/binomial.hpp"
#include "collectives/composed.hpp"
#include "collectives/reduce/binomial.hpp"

namespace railpass::collectives::all_reduce {

inline schedule build_nodes_ring(const shape& s, const parameters& values) {
  return build_all_reduce_on_nodes<reduce::binomial, ring, broadcast::binomial>(s, values[0], 0);
}

inline double cost_nodes_ring(const cost_query& q, const parameters& values) {
  levels all(q, values[0], 0);
  all.inside(reduce::binomial, q.bytes);
  all.across(ring, q.bytes);
  all.inside(broadcast::binomial, q.bytes);
  return all.total_s();
}

inline constexpr algorithm nodes_ring{
    .op = collective::all_reduce,
    .name = "nodes_ring",
    .source = lanes_source,
    .needs = {.commutative = true, .max_nodes = most_nodes_written_out},
    .scratch = {.messages = 3},
    .parameter_list = {leaders_parameter},
    .build = build_nodes_ring,
    .cost_s = cost_nodes_ring};

}  // namespace railpass::collectives::all_reduce

#endif

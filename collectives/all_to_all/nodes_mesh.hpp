// SPDX-License-Identifier: BSL-1.0
//
// On nodes: the mesh whose rows are the nodes. Each rank sends the rank of the same local rank on
// every other node all blocks for that node in one message, and then, repacked, each rank of its
// node its own.
//
// Cost: as mesh; per rank one message to each other node.
// Good when: blocks are short, and messages across the network too many. Poor when: they are long.
// Needs: several nodes of equally many ranks.
// Source: Traeff: Decomposing collectives for exploiting multi-lane communication, 2019,
// doi:10.48550/arXiv.1910.13373.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_to_all, nodes_mesh)
#elif !defined(RAILPASS_COLLECTIVES_ALL_TO_ALL_NODES_MESH)
#define RAILPASS_COLLECTIVES_ALL_TO_ALL_NODES_MESH

#include "collectives/all_to_all/mesh.hpp"

namespace railpass::collectives::all_to_all {

inline schedule build_nodes_mesh(const shape& s, const parameters&) {
  return build_mesh_of(s,
                       collectives::mesh(s.num_ranks, s.nodes.empty() ? s.num_ranks : s.nodes[1]));
}

inline double cost_nodes_mesh(const cost_query& q, const parameters&) {
  return cost_mesh_of(q, collectives::mesh(q.num_ranks, std::min(q.ranks_per_node, q.num_ranks)));
}

inline constexpr algorithm nodes_mesh{.op = collective::all_to_all,
                                      .name = "nodes_mesh",
                                      .source = "Traeff 2019, doi:10.48550/arXiv.1910.13373",
                                      .needs = {.max_nodes = 256, .equal_nodes = true},
                                      .scratch = {.messages = 3},
                                      .build = build_nodes_mesh,
                                      .cost_s = cost_nodes_mesh};

}  // namespace railpass::collectives::all_to_all

#endif

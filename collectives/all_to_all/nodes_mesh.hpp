// SPDX-License-Identifier: BSL-1.0
//
// On nodes: the mesh whose first dimension is the nodes. Each rank sends the rank of the same local
// rank on every other node all blocks for that node in one message, and then, repacked, each rank
// of its node its own; with three dimensions by way of the ranks of a mesh in the node.
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

inline std::vector<int> node_extents(int num_ranks, int per_node, const parameters& values) {
  std::vector<int> extents = mesh_extents(per_node, int(values[0]) - 1);
  if (num_ranks > per_node) extents.insert(extents.begin(), num_ranks / per_node);
  return extents;
}

inline schedule build_nodes_mesh(const shape& s, const parameters& values) {
  const int per_node = s.nodes.empty() ? s.num_ranks : s.nodes[1];
  return build_mesh_of(s, node_extents(s.num_ranks, per_node, values));
}

inline double cost_nodes_mesh(const cost_query& q, const parameters& values) {
  return cost_mesh_of(q,
                      node_extents(q.num_ranks, std::min(q.ranks_per_node, q.num_ranks), values));
}

inline constexpr algorithm nodes_mesh{.op = collective::all_to_all,
                                      .name = "nodes_mesh",
                                      .source = "Traeff 2019, doi:10.48550/arXiv.1910.13373",
                                      .needs = {.max_nodes = 256, .equal_nodes = true},
                                      .scratch = {.messages = 3},
                                      .spans_blocks = true,
                                      .parameter_list = {dimensions_parameter},
                                      .build = build_nodes_mesh,
                                      .cost_s = cost_nodes_mesh};

}  // namespace railpass::collectives::all_to_all

#endif

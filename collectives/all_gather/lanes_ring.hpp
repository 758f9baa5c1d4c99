// SPDX-License-Identifier: BSL-1.0
//
// Lanes: each rank collects, in a ring across nodes, the blocks of the ranks of the same local
// rank on other nodes, and passes them on in a ring of its node.
//
// Cost: as ring across nodes with single blocks, and ring within a node; two copies.
// Good when: blocks are long, because all ranks of a node send across. Poor when: they are short.
// Needs: several nodes of equally many ranks.
// Source: Traeff: Decomposing collectives for exploiting multi-lane communication, 2019,
// doi:10.48550/arXiv.1910.13373.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gather, lanes_ring)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHER_LANES_RING)
#define RAILPASS_COLLECTIVES_ALL_GATHER_LANES_RING

#include "collectives/all_gather/ring.hpp"
#include "collectives/composed.hpp"

namespace railpass::collectives::all_gather {

inline schedule build_lanes_ring(const shape& s, const parameters&) {
  return build_all_gather_in_lanes<ring, ring>(s);
}

inline double cost_lanes_ring(const cost_query& q, const parameters&) {
  const double block = q.bytes / q.num_ranks;
  levels all(q, 0, 0);
  all.across(ring, q.bytes);
  all.inside_once(ring, q.bytes);
  all.local(q.machine.copy.time_s(block) + q.num_ranks * q.machine.copy.time_s(block));
  return all.total_s();
}

inline constexpr algorithm lanes_ring{
    .op = collective::all_gather,
    .name = "lanes_ring",
    .source = "Traeff 2019, doi:10.48550/arXiv.1910.13373",
    .needs = {.max_nodes = most_nodes_written_out, .equal_nodes = true},
    .scratch = {.messages = 1},
    .build = build_lanes_ring,
    .cost_s = cost_lanes_ring};

}  // namespace railpass::collectives::all_gather

#endif

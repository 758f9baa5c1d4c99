// SPDX-License-Identifier: BSL-1.0
//
// Nodes of 12 cores, which share 40 GB/s, on a fat tree of 25 GB/s.
// railpass: {"ranks": 36, "ranks_per_node": 12, "transport": "fabric"}
#include "nodes_of_cores.hpp"

extern "C" void load_platform(const simgrid::s4u::Engine&) {
  create({12, 40e9, 0.2e-6, {2, {8, 2}, {1, 4}, {1, 1}}, 25e9, 0.4e-6});
}

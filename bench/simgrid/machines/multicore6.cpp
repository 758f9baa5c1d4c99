// SPDX-License-Identifier: BSL-1.0
//
// Nodes of 6 cores, which share 15 GB/s, on a fat tree of 6 GB/s.
// railpass: {"ranks": 30, "ranks_per_node": 6, "transport": "fabric"}
#include "nodes_of_cores.hpp"

extern "C" void load_platform(const simgrid::s4u::Engine&) {
  create({6, 15e9, 0.3e-6, {2, {4, 2}, {1, 2}, {1, 1}}, 6e9, 0.6e-6});
}

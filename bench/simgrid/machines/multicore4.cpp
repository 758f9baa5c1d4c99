// SPDX-License-Identifier: BSL-1.0
//
// Nodes of 4 cores, which share 12 GB/s, on a fat tree of 3 GB/s.
// railpass: {"ranks": 24, "ranks_per_node": 4, "transport": "fabric"}
#include "nodes_of_cores.hpp"

extern "C" void load_platform(const simgrid::s4u::Engine&) {
  create({4, 12e9, 0.35e-6, {2, {3, 2}, {1, 2}, {1, 1}}, 3e9, 0.8e-6});
}

// SPDX-License-Identifier: BSL-1.0
//
// Nodes of 8 cores, which share 20 GB/s, on a fat tree of 12.5 GB/s.
// railpass: {"ranks": 32, "ranks_per_node": 8, "transport": "fabric"}
#include "nodes_of_cores.hpp"

extern "C" void load_platform(const simgrid::s4u::Engine&) {
  create({8, 20e9, 0.25e-6, {2, {8, 2}, {1, 4}, {1, 1}}, 12.5e9, 0.5e-6});
}

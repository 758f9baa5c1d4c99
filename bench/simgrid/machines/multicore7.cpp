// SPDX-License-Identifier: BSL-1.0
//
// Nodes of 7 cores, which share 20 GB/s, on a fat tree of 6 GB/s.
// railpass: {"ranks": 28, "ranks_per_node": 7, "transport": "fabric"}
#include "nodes_of_cores.hpp"

extern "C" void load_platform(const simgrid::s4u::Engine&) {
  create({7, 20e9, 0.2e-6, {2, {2, 2}, {1, 1}, {1, 1}}, 6e9, 0.5e-6});
}

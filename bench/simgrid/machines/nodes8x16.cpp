// SPDX-License-Identifier: BSL-1.0
//
// 8 nodes of 16 cores, which share 40 GB/s, on a fat tree of 12.5 GB/s.
// railpass: {"ranks": 128, "ranks_per_node": 16, "transport": "fabric"}
#include "nodes_of_cores.hpp"

extern "C" void load_platform(const simgrid::s4u::Engine&) {
  create({16, 40e9, 0.2e-6, {2, {4, 2}, {1, 2}, {1, 1}}, 12.5e9, 0.5e-6});
}

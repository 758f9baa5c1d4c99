// SPDX-License-Identifier: BSL-1.0
//
// 16 nodes of 64 cores, which share 160 GB/s, on a fat tree of 25 GB/s.
// railpass: {"ranks": 1024, "ranks_per_node": 64, "transport": "fabric", "sampled_by": 64}
#include "nodes_of_cores.hpp"

extern "C" void load_platform(const simgrid::s4u::Engine&) {
  create({64, 160e9, 0.2e-6, {2, {8, 2}, {1, 4}, {1, 1}}, 25e9, 0.4e-6});
}

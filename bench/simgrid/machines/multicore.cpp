// SPDX-License-Identifier: BSL-1.0
//
// Nodes of 8 cores on a fat tree of 12.5 GB/s; what the cores of a node send each other shares 20
// GB/s. (XML cannot say that: the loopback of its clusters gives every message the full bandwidth.)
// railpass: {"ranks": 32, "ranks_per_node": 8, "transport": "fabric"}
#include <simgrid/s4u.hpp>
#include <string>
#include <utility>
#include <vector>

namespace sg4 = simgrid::s4u;

extern "C" void load_platform(const sg4::Engine&);

void load_platform(const sg4::Engine&) {
  const auto host = [](sg4::NetZone* zone, const std::vector<unsigned long>&, unsigned long id)
      -> std::pair<simgrid::kernel::routing::NetPoint*, simgrid::kernel::routing::NetPoint*> {
    sg4::Host* const made = zone->create_host("n-" + std::to_string(id), "10Gf")->set_core_count(8);
    return {made->get_netpoint(), nullptr};
  };
  const auto memory = [](sg4::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
    return zone->create_link("memory-" + std::to_string(id), 20e9)
        ->set_latency(0.25e-6)
        ->set_sharing_policy(sg4::Link::SharingPolicy::SHARED)
        ->seal();
  };
  sg4::create_fatTree_zone("w", nullptr, {2, {8, 2}, {1, 4}, {1, 1}},
                           sg4::ClusterCallbacks(host, memory, nullptr), 12.5e9, 0.5e-6,
                           sg4::Link::SharingPolicy::SPLITDUPLEX)
      ->seal();
}

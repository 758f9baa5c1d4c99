// SPDX-License-Identifier: BSL-1.0
//
// Nodes of several cores on a fat tree; what the cores of a node send each other shares its memory.
// (XML cannot say that: the loopback of its clusters gives every message the full bandwidth.)
#pragma once

#include <simgrid/s4u.hpp>
#include <string>
#include <utility>
#include <vector>

// Bandwidths in bytes per second, latencies in seconds.
struct nodes_of_cores {
  int cores;
  double memory_bandwidth, memory_latency;
  simgrid::s4u::FatTreeParams tree;
  double link_bandwidth, link_latency;
};

inline void create(const nodes_of_cores& machine) {
  namespace sg4 = simgrid::s4u;
  const auto host = [&](sg4::NetZone* zone, const std::vector<unsigned long>&, unsigned long id)
      -> std::pair<simgrid::kernel::routing::NetPoint*, simgrid::kernel::routing::NetPoint*> {
    sg4::Host* const made =
        zone->create_host("n-" + std::to_string(id), "10Gf")->set_core_count(machine.cores);
    return {made->get_netpoint(), nullptr};
  };
  const auto memory = [&](sg4::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
    return zone->create_link("memory-" + std::to_string(id), machine.memory_bandwidth)
        ->set_latency(machine.memory_latency)
        ->set_sharing_policy(sg4::Link::SharingPolicy::SHARED)
        ->seal();
  };
  sg4::create_fatTree_zone("w", nullptr, machine.tree, sg4::ClusterCallbacks(host, memory, nullptr),
                           machine.link_bandwidth, machine.link_latency,
                           sg4::Link::SharingPolicy::SPLITDUPLEX)
      ->seal();
}

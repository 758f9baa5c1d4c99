// SPDX-License-Identifier: BSL-1.0
//
// Closed forms against the simulator, which plays the schedules: nodes in blocks, links of two
// networks.
#pragma once

#include "collectives/verify.hpp"
#include "models/simulator.hpp"
#include "support/catch.hpp"

#include <cmath>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace railpass {

/// 200 Mbit/s behind a kernel, and 10 Gbit/s.
inline std::vector<machine_model> two_networks() {
  const auto link = [](double latency_s, double overhead_s, double gap_s_per_byte) {
    link_piece eager;
    eager.latency_s = latency_s;
    eager.send_overhead_s = eager.receive_overhead_s = eager.gap_s = overhead_s;
    eager.gap_s_per_byte = gap_s_per_byte;
    link_piece rendezvous = eager;
    rendezvous.from_bytes = 65537;
    rendezvous.latency_s = 2.5 * latency_s;
    return link_model{.pieces = {eager, rendezvous}, .eager_limit_bytes = 65536};
  };
  std::vector<machine_model> all(2);
  all[0].across_nodes = link(40e-6, 5e-6, 40e-9);
  all[1].across_nodes = link(8e-6, 1e-6, 0.8e-9);
  for (machine_model& m : all) {
    m.same_node = link(5e-7, 2e-7, 1e-10);
    m.copy = {.alpha_s = 5e-8, .s_per_byte = 5e-11};
    m.reduce = {.alpha_s = 5e-8, .s_per_byte = 1e-10};
  }
  return all;
}

/// One arm at one size on one network.
struct closed_form_case {
  std::string what;
  double ratio;  ///< closed form / simulator
};

/// `bytes`: of the message, or of each rank's block where ranks have such. Of the segment sizes
/// only some that cut the message.
inline std::vector<closed_form_case> compare_closed_forms(std::span<const collective> ops,
                                                          std::initializer_list<std::int64_t> bytes,
                                                          int ranks_per_node = 1) {
  std::vector<closed_form_case> all;
  const std::vector<machine_model> networks = two_networks();
  simulator play;
  for (const collective op : ops)
    for (const arm& a : arms_of(op)) {
      if (a.base->is_native()) continue;
      for (const int p : {2, 3, 8, 13, 32}) {
        if (!eligible(*a.base,
                      {.num_ranks = p, .units = p, .nodes = node_facts::blocks(p, ranks_per_node)}))
          continue;
        const node_layout nodes = node_layout::blocks(p, ranks_per_node);
        const node_order order(nodes.node_of_rank);
        const std::vector<schedule> schedules = build_all(a, p, true, 0, order.begins());
        const std::int64_t segment = schedules[0].segment_bytes;
        if (segment != 0 && segment != 8192 && segment != 65536) continue;
        for (const std::int64_t n : bytes) {
          const bool barrier = describe(op).what == promise::all_arrive;
          const message_size size = barrier
                                        ? message_size{p, 1}
                                        : message_size{(traits_of(op).blocks ? p : 1) * n / 8, 8};
          if (segment > 0 && segment >= size.bytes()) continue;
          for (std::size_t network = 0; network < networks.size(); ++network) {
            const machine_model& m = networks[network];
            const double played_s =
                play.run({.machine = m, .nodes = nodes, .schedules = schedules, .size = size})
                    .time_s;
            const double closed_s = a.base->cost_s({.machine = m,
                                                    .num_ranks = p,
                                                    .ranks_per_node = ranks_per_node,
                                                    .bytes = double(size.bytes()),
                                                    .unit_bytes = double(size.unit_bytes)},
                                                   a.values);
            all.push_back({std::string(name_of(op)) + " " + name_of(a) + " of " +
                               std::to_string(size.bytes()) + " bytes, " + std::to_string(p) +
                               " ranks, network " + std::to_string(network + 1) + ", simulated " +
                               std::to_string(played_s * 1e6) + " us",
                           closed_s / played_s});
          }
          if (barrier) break;
        }
      }
    }
  return all;
}

/// Every ratio lies between the bounds, and more than `share` of them within `tolerance` of 1.
inline void check_closed_forms(const std::vector<closed_form_case>& all, double lowest,
                               double highest, double tolerance, double share) {
  double within = 0;
  for (const closed_form_case& c : all) {
    CAPTURE(c.what, c.ratio);
    CHECK(c.ratio > lowest);
    CHECK(c.ratio < highest);
    if (std::abs(c.ratio - 1) <= tolerance) ++within;
  }
  CAPTURE(all.size(), within);
  CHECK(within > share * double(all.size()));
}

}  // namespace railpass

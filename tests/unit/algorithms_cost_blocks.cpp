// SPDX-License-Identifier: BSL-1.0
// Closed forms against the simulator, as in algorithms_cost.cpp, of the collectives in which every
// rank has a block of the message.
#include "collectives/verify.hpp"
#include "models/simulator.hpp"
#include "support/catch.hpp"

#include <cmath>

using namespace railpass;

namespace {

link_model link(double latency_s, double overhead_s, double gap_s_per_byte) {
  link_piece eager;
  eager.latency_s = latency_s;
  eager.send_overhead_s = eager.receive_overhead_s = eager.gap_s = overhead_s;
  eager.gap_s_per_byte = gap_s_per_byte;
  link_piece rendezvous = eager;
  rendezvous.from_bytes = 65537;
  rendezvous.latency_s = 2.5 * latency_s;
  return {.pieces = {eager, rendezvous}, .eager_limit_bytes = 65536};
}

// 200 Mbit/s behind a kernel, and 10 Gbit/s.
std::vector<machine_model> networks() {
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

std::vector<collective> collectives_of_blocks() {
  std::vector<collective> all;
  for (const collective op : all_collectives)
    if (traits_of(op).blocks && describe(op).lengths == block_lengths::equal) all.push_back(op);
  return all;
}

struct comparison {
  std::string what;
  double ratio;  // closed form / simulator
};

// `block_bytes`: of each rank; a barrier has messages of a byte.
std::vector<comparison> compare(std::initializer_list<std::int64_t> block_bytes,
                                int ranks_per_node = 1) {
  std::vector<comparison> all;
  simulator play;
  for (const collective op : collectives_of_blocks()) {
    const bool barrier = describe(op).what == promise::all_arrive;
    for (const arm& a : arms_of(op)) {
      if (a.base->is_native()) continue;
      for (const int p : {2, 3, 8, 13, 32}) {
        if (!eligible(*a.base, {.num_ranks = p, .units = p})) continue;
        const std::vector<schedule> schedules = build_all(a, p, true);
        const node_layout nodes = node_layout::blocks(p, ranks_per_node);
        int network = 0;
        for (const machine_model& m : networks()) {
          ++network;
          for (const std::int64_t block : block_bytes) {
            const message_size size = barrier ? message_size{p, 1} : message_size{p * block / 8, 8};
            // Only segments that cut the message.
            if (schedules[0].segment_bytes >= std::max<std::int64_t>(1, size.bytes())) continue;
            const double played_s =
                play.run({.machine = m, .nodes = nodes, .schedules = schedules, .size = size})
                    .time_s;
            const double closed_s = a.base->cost_s({.machine = m,
                                                    .num_ranks = p,
                                                    .ranks_per_node = ranks_per_node,
                                                    .bytes = double(size.bytes()),
                                                    .unit_bytes = double(size.unit_bytes)},
                                                   a.values);
            all.push_back({std::string(name_of(op)) + " " + name_of(a) + " of blocks of " +
                               std::to_string(block) + " bytes, " + std::to_string(p) +
                               " ranks, network " + std::to_string(network) + ", simulated " +
                               std::to_string(played_s * 1e6) + " us",
                           closed_s / played_s});
            if (barrier) break;
          }
        }
      }
    }
  }
  return all;
}

double share_within(const std::vector<comparison>& all, double tolerance) {
  double within = 0;
  for (const comparison& c : all)
    if (std::abs(c.ratio - 1) <= tolerance) ++within;
  return within / double(all.size());
}

}  // namespace

TEST_CASE("closed forms of blocks are within 15 % of the simulator for most arms") {
  const std::vector<comparison> all = compare({64, 2048, std::int64_t{1} << 17});
  for (const comparison& c : all) {
    CAPTURE(c.what, c.ratio);
    CHECK(c.ratio > 0.5);
    CHECK(c.ratio < 1.7);
  }
  CAPTURE(all.size(), share_within(all, 0.05));
  CHECK(share_within(all, 0.15) > 0.9);
}

TEST_CASE("closed forms of blocks on nodes with several ranks are within 50 % for most arms") {
  const std::vector<comparison> all = compare({64, 2048, std::int64_t{1} << 17}, 4);
  for (const comparison& c : all) {
    CAPTURE(c.what, c.ratio);
    CHECK(c.ratio > 0.2);
    CHECK(c.ratio < 4);
  }
  CAPTURE(all.size(), share_within(all, 0.15));
  CHECK(share_within(all, 0.5) > 0.9);
}

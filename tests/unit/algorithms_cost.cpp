// SPDX-License-Identifier: BSL-1.0
// Closed forms against the simulator, which plays the schedules: one rank per node, all links
// alike.
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

struct comparison {
  std::string what;
  double ratio;  // closed form / simulator
};

std::vector<comparison> compare(std::initializer_list<std::int64_t> sizes, int ranks_per_node = 1) {
  std::vector<comparison> all;
  simulator play;
  for (const collective op : {collective::broadcast, collective::all_reduce, collective::reduce,
                              collective::scan, collective::exscan})
    for (const arm& a : arms_of(op)) {
      if (a.base->is_native()) continue;
      std::int64_t segment_bytes = 0;
      for (int i = 0; i < a.base->num_parameters(); ++i)
        if (a.base->parameter_list[std::size_t(i)].in_bytes)
          segment_bytes = a.values[std::size_t(i)];
      // Some segment sizes will do, and only those that cut the message.
      if (segment_bytes != 0 && segment_bytes != 8192 && segment_bytes != 65536) continue;
      for (const int p : {2, 3, 8, 13, 32}) {
        const std::vector<schedule> schedules = build_all(a, p, true);
        const node_layout nodes = node_layout::blocks(p, ranks_per_node);
        int network = 0;
        for (const machine_model& m : networks()) {
          ++network;
          for (const std::int64_t bytes : sizes) {
            if (segment_bytes > bytes) continue;
            const double played_s = play.run({.machine = m,
                                              .nodes = nodes,
                                              .schedules = schedules,
                                              .size = {bytes / 8, 8}})
                                        .time_s;
            const double closed_s = a.base->cost_s({.machine = m,
                                                    .num_ranks = p,
                                                    .ranks_per_node = ranks_per_node,
                                                    .bytes = double(bytes),
                                                    .unit_bytes = 8},
                                                   a.values);
            all.push_back({name_of(a) + " of " + std::to_string(bytes) + " bytes, " +
                               std::to_string(p) + " ranks, network " + std::to_string(network) +
                               ", simulated " + std::to_string(played_s * 1e6) + " us",
                           closed_s / played_s});
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

TEST_CASE("closed forms of long messages are within 15 % of the simulator for most arms") {
  const std::vector<comparison> all = compare({std::int64_t{1} << 20});
  for (const comparison& c : all) {
    CAPTURE(c.what, c.ratio);
    CHECK(c.ratio > 0.6);
    CHECK(c.ratio < 1.5);
  }
  CAPTURE(all.size(), share_within(all, 0.05));
  CHECK(share_within(all, 0.15) > 0.88);
}

TEST_CASE("closed forms of short messages are within 15 % of the simulator for most arms") {
  const std::vector<comparison> all = compare({1024, 16384});
  for (const comparison& c : all) {
    CAPTURE(c.what, c.ratio);
    CHECK(c.ratio > 0.6);
    CHECK(c.ratio < 2);
  }
  CAPTURE(all.size(), share_within(all, 0.05));
  CHECK(share_within(all, 0.15) > 0.9);
}

TEST_CASE(
    "closed forms on nodes with several ranks are within 50 % of the simulator for most arms") {
  const std::vector<comparison> all = compare({16384, std::int64_t{1} << 20}, 4);
  for (const comparison& c : all) {
    CAPTURE(c.what, c.ratio);
    CHECK(c.ratio > 0.3);
    CHECK(c.ratio < 4);
  }
  CAPTURE(all.size(), share_within(all, 0.15));
  CHECK(share_within(all, 0.5) > 0.9);
}

TEST_CASE("closed forms grow with the message and are finite for none") {
  const machine_model m = networks()[0];
  for (const collective op : {collective::broadcast, collective::all_reduce, collective::reduce,
                              collective::scan, collective::exscan})
    for (const arm& a : arms_of(op)) {
      if (a.base->is_native()) continue;
      for (const int p : {2, 3, 7, 64, 1000}) {
        CAPTURE(name_of(a), p);
        double before_s = 0;
        for (const double bytes : {0.0, 8.0, 4096.0, 1e6, 1e9}) {
          const double s = a.base->cost_s(
              {.machine = m, .num_ranks = p, .bytes = bytes, .unit_bytes = 8}, a.values);
          REQUIRE(std::isfinite(s));
          REQUIRE(s > 0);
          REQUIRE(s >= before_s);
          before_s = s;
        }
      }
    }
}

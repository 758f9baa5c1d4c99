// SPDX-License-Identifier: BSL-1.0
// Closed forms against the simulator of the collectives in which every rank has the whole message.
#include "support/closed_forms.hpp"

#include <array>

using namespace railpass;

namespace {

constexpr std::array whole_messages{collective::broadcast, collective::all_reduce,
                                    collective::reduce, collective::scan, collective::exscan};
constexpr std::int64_t large = 1 << 20;

}  // namespace

TEST_CASE("closed forms of long messages are within 15 % of the simulator for most arms") {
  check_closed_forms(compare_closed_forms(whole_messages, {large}), 0.6, 1.5, 0.15, 0.88);
}

TEST_CASE("closed forms of short messages are within 15 % of the simulator for most arms") {
  check_closed_forms(compare_closed_forms(whole_messages, {64, 1024, 16384}), 0.6, 2, 0.15, 0.89);
}

TEST_CASE(
    "closed forms on nodes with several ranks are within 50 % of the simulator for most arms") {
  check_closed_forms(compare_closed_forms(whole_messages, {16384, large}, 4), 0.3, 4, 0.5, 0.9);
}

TEST_CASE("closed forms grow with the message and are finite for none") {
  const machine_model m = two_networks()[0];
  for (const collective op : whole_messages)
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

TEST_CASE("segments that ranks pass on wait for the flow of all ranks, and no segment alone does") {
  machine_model m = two_networks()[0];
  constexpr double flow_s = 100e-6, segments = 1024, segment_bytes = 1024;
  const auto seconds = [&](const char* name, int p, double bytes) {
    const arm a = parse_arm(collective::broadcast, std::string(name) + "+segment_bytes=1KiB");
    return a.base->cost_s({.machine = m, .num_ranks = p, .bytes = bytes}, a.values);
  };
  const auto segment_s = [&](const char* name, int p) {
    return (seconds(name, p, segments * segment_bytes) - seconds(name, p, segment_bytes)) /
           (segments - 1);
  };
  const double alone_s = seconds("pipeline", 8, segment_bytes);
  const double link_s = segment_s("pipeline", 8);
  REQUIRE(link_s < flow_s / 2);
  m.across_nodes.flow.pieces = {{0, flow_s, 0}};
  CHECK(seconds("pipeline", 8, segment_bytes) == Approx(alone_s));
  CHECK(segment_s("pipeline", 8) == Approx(flow_s));  // comes and goes
  CHECK(segment_s("pipeline", 2) == Approx(flow_s / 2));
  CHECK(segment_s("binary", 8) == Approx(1.5 * flow_s));  // comes once, goes twice
  m.across_nodes.crowd.pieces = {{0, 2 * flow_s, 0}};
  CHECK(segment_s("pipeline", 8) == Approx(flow_s));
  // Comes from many, goes to many: of two halves two each.
  CHECK(segment_s("double_binary_tree", 8) == Approx(2 * flow_s).epsilon(0.01));
  m.across_nodes.flow.pieces = {{0, link_s / 2, 0}};
  CHECK(segment_s("pipeline", 8) == Approx(link_s));  // the link is slower
}

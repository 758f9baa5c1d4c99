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
  check_closed_forms(compare_closed_forms(whole_messages, {1024, 16384}), 0.6, 2, 0.15, 0.9);
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

// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/launches.hpp"

#include "railpass/base/error.hpp"
#include "support/catch.hpp"

#include <string>
#include <tuple>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

namespace {

// A launch in which native takes 1 ms and tuned `ratio` times that.
bench_results launch(double ratio) {
  return {.machine_id = {},
          .measured_at = "2026-11-26T00:00:00Z",
          .num_ranks = 4,
          .ranks_per_node = 2,
          .notes = {{"clock", "barrier"}, {"tuned_arm", ratio < 1 ? "ring" : "native"}},
          .results = {{.collective = "broadcast",
                       .bytes = 64,
                       .arm = "native",
                       .median_s = 1e-3,
                       .p90_s = 2e-3,
                       .runs = 10,
                       .ratio_to_native = 1.0,
                       .spread_s = 1e-5},
                      {.collective = "broadcast",
                       .bytes = 64,
                       .arm = "tuned",
                       .median_s = ratio * 1e-3,
                       .p90_s = ratio * 2e-3,
                       .runs = 20,
                       .ratio_to_native = ratio,
                       .ratio_low = 0.999 * ratio,
                       .ratio_high = 1.001 * ratio,
                       .ratio_to_best = ratio < 1 ? 1.0 : ratio,
                       .best_low = 0.9,
                       .best_high = 1.1,
                       .spread_s = 1e-5}},
          .learning = {{.collective = "broadcast",
                        .bytes = 64,
                        .calls = 100,
                        .total_s = ratio,
                        .native_total_s = 1,
                        .ratio_to_native = ratio,
                        .native_low = ratio,
                        .native_high = ratio,
                        .best_arm = ratio < 1 ? "ring" : "native",
                        .best_total_s = 1,
                        .ratio_to_best = 1,
                        .worst_call_s = ratio,
                        .best_median_s = 1,
                        .best_worst_call_s = 1}}};
}

std::vector<bench_results> launches(const std::vector<double>& ratios) {
  std::vector<bench_results> all;
  for (const double r : ratios) all.push_back(launch(r));
  return all;
}

}  // namespace

TEST_CASE("what holds within a launch does not hold over launches that differ") {
  const bench_results all =
      measure::over_launches(launches({1.193, 1.187, 1.19, 0.814, 0.809, 0.812}));
  REQUIRE(all.results.size() == 2);
  const bench_result &native = all.results[0], &tuned = all.results[1];
  CHECK(*tuned.ratio_to_native == Approx((1.187 + 0.814) / 2));
  CHECK(*tuned.ratio_low == 0.809);
  CHECK(*tuned.ratio_high == 1.193);
  CHECK(tuned.launch_ratios == std::vector<double>{1.193, 1.187, 1.19, 0.814, 0.809, 0.812});
  CHECK(tuned.median_s == Approx(1e-3 * (1.187 + 0.814) / 2));
  CHECK(tuned.launch_medians_s.size() == 6);
  CHECK(tuned.p90_s >= tuned.median_s);
  CHECK(tuned.runs == 120);
  CHECK(*tuned.spread_s > 0.2e-3);  // that of single launches is 10 us
  CHECK(*tuned.best_low == 1.0);
  CHECK(*tuned.best_high == 1.193);
  CHECK(*native.ratio_to_native == 1);
  CHECK_FALSE(native.ratio_low);
  CHECK(*native.spread_s == Approx(1e-5));

  CHECK(all.notes.at("launches") == "6");
  CHECK(all.notes.at("clock") == "barrier");
  CHECK(all.notes.at("tuned_arm") == "native; ring");
  REQUIRE(all.learning.size() == 1);
  CHECK(all.learning[0].native_low == 0.809);
  CHECK(all.learning[0].worst_call_s == 1.193);
  CHECK(all.learning[0].best_arm == "native or ring");
}

TEST_CASE("fewer than six launches have no interval") {
  const bench_result five = measure::over_launches(launches({0.8, 0.8, 0.8, 0.8, 0.8})).results[1];
  CHECK(*five.ratio_to_native == 0.8);
  CHECK_FALSE(five.ratio_low);
  CHECK_FALSE(five.ratio_high);
  CHECK_FALSE(five.best_low);
  CHECK_FALSE(five.best_high);
}

TEST_CASE("of nine launches one at either end may be anything") {
  const auto ratios = launches({0.8, 0.81, 0.82, 0.83, 0.84, 0.85, 0.86, 0.87, 3});
  const bench_result nine = measure::over_launches(ratios).results[1];
  CHECK(*nine.ratio_to_native == 0.84);
  CHECK(*nine.ratio_low == 0.81);
  CHECK(*nine.ratio_high == 0.87);
}

TEST_CASE("what only some launches measured is of those") {
  std::vector<bench_results> some = launches({0.9, 0.8});
  some[0].results.pop_back();
  some[1].results.push_back(some[1].results[1]);
  some[1].results.back().arm = "ring";
  some[1].results.back().ratio_to_native.reset();
  some[0].results.push_back(some[0].results[0]);
  some[0].results.back().bytes = 128;
  some[1].own_algorithms = {{"broadcast", "chain", 2}};
  some[1].notes["broadcast/64/left_out/chain"] = "the time was not enough";
  const bench_results all = measure::over_launches(some);
  REQUIRE(all.results.size() == 4);
  CHECK(all.results[1].launch_ratios == std::vector<double>{0.8});
  CHECK(all.results[2].launch_medians_s.size() == 1);
  CHECK_FALSE(all.results[2].ratio_to_native);
  CHECK(all.results[3].bytes == 128);  // rows of a cell are together
  CHECK(all.own_algorithms == some[1].own_algorithms);
  CHECK(all.notes.at("broadcast/64/left_out/chain") == "the time was not enough");
}

TEST_CASE("an arm that gave a wrong result in one launch has no rows of the collective") {
  std::vector<bench_results> some = launches({0.9, 0.8});
  for (bench_results& b : some)
    for (const auto& [collective, bytes, arm] :
         std::vector<std::tuple<std::string, std::int64_t, std::string>>{
             {"broadcast", 64, "chain"}, {"broadcast", 128, "chain"}, {"reduce", 64, "chain"}}) {
      b.results.push_back(b.results[1]);
      b.results.back().collective = collective;
      b.results.back().bytes = bytes;
      b.results.back().arm = arm;
    }
  some[1].results.erase(some[1].results.begin() + 2);
  some[1].notes["broadcast/64/left_out/chain"] = "its result was wrong";
  some[1].notes["broadcast/64/left_out/tuned"] = "the time was not enough";
  const bench_results all = measure::over_launches(some);
  REQUIRE(all.results.size() == 3);
  CHECK(all.results[1].arm == "tuned");
  CHECK(all.results[2].collective == "reduce");
}

TEST_CASE("launches that are not of one bench are refused") {
  CHECK_THROWS_AS(measure::over_launches({}), error);
  std::vector<bench_results> other = launches({1, 1});
  other[1].num_ranks = 5;
  CHECK_THROWS_WITH(measure::over_launches(other), ContainsSubstring("5 ranks"));
}

TEST_CASE("a launch by one algorithm is compared with native of the launch before") {
  bench_results all = launch(0.5), alone = launch(1);
  alone.results = {alone.results.front(), alone.results.front()};
  for (bench_result& r : alone.results) r.arm = "native:7";
  alone.results[0].median_s = 3e-3;
  alone.results[1].bytes = 128;  // not measured by the default
  alone.notes = {{"clock", "other"}, {"broadcast/64/left_out/native:8", "its result was wrong"}};
  measure::add_own_algorithm(all, alone);
  REQUIRE(all.results.size() == 4);
  CHECK(all.results[2].ratio_to_native == 3.0);
  CHECK_FALSE(all.results[3].ratio_to_native);
  CHECK(all.notes.at("clock") == "barrier");
  CHECK(all.notes.at("broadcast/64/left_out/native:8") == "its result was wrong");
}

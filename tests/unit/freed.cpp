// SPDX-License-Identifier: BSL-1.0
#include "railpass/select/statistics/freed.hpp"

#include "support/catch.hpp"

#include <numeric>

using namespace railpass::select;

namespace {

statistics_dump one_communicator(const std::string& name, std::int64_t calls, double mean_s) {
  statistics_dump dump{.merges = 1, .merge_cost_s = 1e-6};
  dump.contexts.push_back({.communicator = name,
                           .collective = "broadcast",
                           .num_ranks = 4,
                           .calls = calls,
                           .time_s = double(calls) * mean_s,
                           .arms = {{.arm = "native",
                                     .calls = calls,
                                     .times = {.samples = calls,
                                               .mean_s = mean_s,
                                               .spread = 0.1,
                                               .quantiles = {.low_s = 0.9 * mean_s,
                                                             .median_s = mean_s,
                                                             .high_s = 1.2 * mean_s}}},
                                    {.arm = "chain"}}});
  return dump;
}

std::int64_t all_calls(const statistics_dump& dump) {
  return std::accumulate(
      dump.contexts.begin(), dump.contexts.end(), std::int64_t{0},
      [](std::int64_t sum, const context_statistics& c) { return sum + c.calls; });
}

}  // namespace

TEST_CASE("communicators of one name count together when they are freed") {
  statistics_dump all;
  for (int i = 0; i < 1000; ++i) add_freed(all, one_communicator("halo", 10, i % 2 ? 3e-6 : 1e-6));
  REQUIRE(all.contexts.size() == 1);
  CHECK(all.merges == 1000);
  CHECK(all.merge_cost_s == Approx(1e-3));
  const context_statistics& c = all.contexts.front();
  CHECK(c.calls == 10000);
  CHECK(c.time_s == Approx(0.02));
  REQUIRE(c.arms.size() == 1);  // of the arms that ran
  CHECK(c.arms[0].times.samples == 10000);
  CHECK(c.arms[0].times.mean_s == Approx(2e-6));
  CHECK(c.arms[0].times.spread == Approx(0.1));
  CHECK(c.arms[0].times.quantiles.low_s == Approx(1.8e-6));
  CHECK(c.arms[0].times.quantiles.median_s == Approx(2e-6));
  CHECK(c.arms[0].times.quantiles.high_s == Approx(2.4e-6));
}

TEST_CASE("communicators whose calls have other sizes count together if these are of one class") {
  const auto freed_with = [](auto mean_of) {
    statistics_dump all;
    for (int i = 0; i < 1000; ++i) {
      statistics_dump one = one_communicator("halo", 10, 1e-6);
      context_statistics& c = one.contexts.front();
      c.first_bytes = mean_of(i);
      c.mean_bytes = double(c.first_bytes);
      c.from_bytes = c.first_bytes - 10;
      c.to_bytes = c.first_bytes + 10;
      add_freed(all, std::move(one));
    }
    return all.contexts;
  };
  const auto near = freed_with([](int i) { return 70000 + i; });
  REQUIRE(near.size() == 1);
  CHECK(near[0].from_bytes == 69990);
  CHECK(near[0].to_bytes == 71009);
  CHECK(*near[0].mean_bytes == Approx(70499.5));
  CHECK(near[0].first_bytes == 70500);
  const auto apart = freed_with([](int i) { return i % 2 == 0 ? 1000 : 100000; });
  REQUIRE(apart.size() == 2);
  for (const context_statistics& c : apart) CHECK_FALSE(mixes_sizes(c));
}

TEST_CASE("however many names there are, what is kept is bounded and no call is lost") {
  statistics_dump all;
  for (int i = 0; i < 1000; ++i) add_freed(all, one_communicator(std::to_string(i), 7, 1e-6));
  CHECK(all.contexts.size() == most_freed_contexts + 1);
  CHECK(all.contexts.back().communicator == other_freed_communicators);
  CHECK(all_calls(all) == 7000);
}

TEST_CASE("however many features the calls of function sets have, what is kept is bounded") {
  statistics_dump all;
  for (int i = 0; i < 1000; ++i) {
    statistics_dump one = one_communicator("halo", 7, 1e-6);
    one.contexts.front().operation = "set+length=" + std::to_string(i);
    add_freed(all, std::move(one));
  }
  CHECK(all.contexts.size() == 2 * most_freed_contexts);
}

TEST_CASE("rails that are opened and closed again and again are counted together") {
  statistics_dump all;
  const auto rail = [](std::string name, std::int64_t sent, double rate) {
    return rail_statistics{.rails = "a,b",
                           .rail = std::move(name),
                           .sent_bytes = sent,
                           .share = 0.5,
                           .bytes_per_s = rate,
                           .changes = 1};
  };
  for (int i = 1; i <= 1000; ++i) add_closed(all, {rail("a", 3, i), rail("b", 1, 2 * i)});
  add_closed(all, {{.rails = "c", .rail = "c", .sent_bytes = 8, .share = 1}});
  REQUIRE(all.rails.size() == 3);
  CHECK(all.rails[0].sent_bytes == 3000);
  CHECK(all.rails[0].share == 0.75);
  CHECK(all.rails[0].bytes_per_s == 1000);
  CHECK(all.rails[0].changes == 1000);
  CHECK(all.rails[1].share == 0.25);
  CHECK(all.rails[2].share == 1);
}

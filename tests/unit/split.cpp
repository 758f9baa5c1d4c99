// SPDX-License-Identifier: BSL-1.0
//
// The split of a message over rails against brute force, and what strategies make of it.
#include "railpass/transport/split.hpp"

#include "railpass/transport/strategies.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

#include <numeric>
#include <random>

using namespace railpass::transport;

namespace {

struct rails_of_test {
  std::vector<transfer_time> times;
  std::vector<double> busy_s;
  std::vector<rail_outlook> outlooks() const {
    std::vector<rail_outlook> result;
    for (std::size_t i = 0; i < times.size(); ++i) result.push_back({&times[i], busy_s[i]});
    return result;
  }
};

transfer_time random_time(std::mt19937_64& random) {
  const auto uniform = [&](double a, double b) {
    return std::uniform_real_distribution<double>(a, b)(random);
  };
  std::vector<transfer_time::point> points;
  double bytes = 0, seconds = uniform(1e-6, 1e-4), s_per_byte = 1 / std::exp(uniform(15, 22));
  const int n = std::uniform_int_distribution<int>(2, 9)(random);
  for (int i = 0; i < n; ++i) {
    points.push_back({bytes, seconds});
    const double more = std::exp(uniform(4, 14));
    bytes += more;
    seconds += more * s_per_byte * uniform(0.4, 2.5);
  }
  return transfer_time(points);
}

rails_of_test random_rails(std::mt19937_64& random, std::size_t n) {
  rails_of_test r;
  for (std::size_t i = 0; i < n; ++i) {
    r.times.push_back(random_time(random));
    const bool busy = random() % 2 == 0;
    r.busy_s.push_back(busy ? std::uniform_real_distribution<double>(0, 5e-3)(random) : 0);
  }
  return r;
}

template <class Number>
double end_of(const std::vector<rail_outlook>& rails, const std::vector<Number>& shares) {
  double end_s = 0;
  for (std::size_t i = 0; i < rails.size(); ++i)
    if (shares[i] > 0) end_s = std::max(end_s, finish_s(rails[i], double(shares[i])));
  return end_s;
}

// The best of all ways to split into `steps` equal units.
double brute_force(const std::vector<rail_outlook>& rails, std::int64_t bytes, int steps) {
  double best_s = 1e300;
  std::vector<double> shares(rails.size());
  const auto place = [&](auto&& self, std::size_t rail, int left) -> void {
    if (rail + 1 == rails.size()) {
      shares[rail] = double(bytes) * left / steps;
      best_s = std::min(best_s, end_of(rails, shares));
      return;
    }
    for (int units = 0; units <= left; ++units) {
      shares[rail] = double(bytes) * units / steps;
      self(self, rail + 1, left - units);
    }
  };
  place(place, 0, steps);
  return best_s;
}

}  // namespace

TEST_CASE("a transfer time is exact at its points, monotone, and defined everywhere") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    const transfer_time t = random_time(random);
    double last_s = -1;
    for (double bytes = 0; bytes < 1e8; bytes = bytes * 1.7 + 1) {
      const double seconds = t.time_s(bytes);
      REQUIRE(seconds > last_s);
      REQUIRE(t.bytes_within(seconds) == Approx(bytes).epsilon(1e-6).margin(1e-3));
      last_s = seconds;
    }
    REQUIRE(t.bytes_within(t.latency_s() / 2) == 0);
  }
  const transfer_time t({{0, 1e-5}, {1024, 2e-5}, {65536, 1e-3}});
  CHECK(t.time_s(1024) == 2e-5);
  CHECK(t.time_s(65536) == Approx(1e-3));
  CHECK(t.time_s(2 * 65536 - 1024) == Approx(2e-3 - 2e-5));  // the last slope goes on
  CHECK(t.at_rate(2 * t.bytes_per_s()).bytes_per_s() == Approx(2 * t.bytes_per_s()));
  CHECK(t.at_rate(2 * t.bytes_per_s()).latency_s() == Approx(1e-5));
  // Times that fall are noise: pooled.
  const transfer_time noisy({{0, 1e-5}, {100, 4e-5}, {200, 2e-5}, {300, 6e-5}});
  CHECK(noisy.time_s(100) == Approx(3e-5));
  CHECK(noisy.time_s(200) == Approx(3e-5));
  CHECK_THROWS_AS(transfer_time({{0, 1e-5}}), railpass::error);
  CHECK_THROWS_AS(transfer_time({{0, 1e-5}, {0, 2e-5}}), railpass::error);
  CHECK_THROWS_AS(transfer_time({{0, 1e-5}, {10, std::nan("")}}), railpass::error);
}

TEST_CASE("the split covers the message once and no other is quicker") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 400; ++round) {
    const std::size_t n = 1 + random() % 3;
    const rails_of_test rails = random_rails(random, n);
    const auto outlooks = rails.outlooks();
    const std::int64_t bytes = 1 + std::int64_t(random() % (1 << (1 + random() % 24)));
    std::vector<std::int64_t> shares(n);
    const double end_s = split(outlooks, bytes, 1, shares);
    INFO("round " << round << ", " << bytes << " bytes over " << n);
    REQUIRE(std::accumulate(shares.begin(), shares.end(), std::int64_t{0}) == bytes);
    for (const std::int64_t s : shares) REQUIRE(s >= 0);
    CHECK(end_s == Approx(end_of(outlooks, shares)));
    // Never worse than the best of a grid, up to the bytes that cannot be divided.
    double byte_s = 0;
    for (const rail_outlook& r : outlooks)
      byte_s = std::max(byte_s, finish_s(r, double(bytes)) - finish_s(r, double(bytes) - 2));
    for (std::size_t i = 0; i < n; ++i)
      byte_s = std::max(byte_s, finish_s(outlooks[i], double(shares[i]) + 4) -
                                    finish_s(outlooks[i], double(shares[i])));
    CHECK(end_s <= brute_force(outlooks, bytes, n == 3 ? 40 : 200) + 2 * byte_s);
    // Those that carry something finish together, and whoever carries nothing would be later.
    for (std::size_t i = 0; i < n; ++i) {
      if (shares[i] > 8) CHECK(finish_s(outlooks[i], double(shares[i])) >= end_s - 2 * byte_s);
      if (shares[i] == 0) CHECK(rails.busy_s[i] + rails.times[i].latency_s() >= end_s - 2 * byte_s);
    }
  }
}

TEST_CASE("the split of many rails conserves bytes and keeps to the smallest part") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t n = 1 + random() % most_rails;
    const rails_of_test rails = random_rails(random, n);
    const std::int64_t bytes = 1 + std::int64_t(random() % (std::uint64_t{1} << (random() % 40)));
    const std::int64_t least = 1 + std::int64_t(random() % 100000);
    std::vector<std::int64_t> shares(n);
    split(rails.outlooks(), bytes, least, shares);
    REQUIRE(std::accumulate(shares.begin(), shares.end(), std::int64_t{0}) == bytes);
    for (const std::int64_t s : shares) {
      REQUIRE(s >= 0);
      if (s > 0) REQUIRE(s >= std::min(least - 1, bytes));
    }
  }
}

TEST_CASE("dichotomy finds the exact split of two rails; of more, only without latencies") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 1000; ++round) {
    const std::size_t n = 1 + random() % 4;
    rails_of_test rails = random_rails(random, n);
    if (n > 2)
      for (transfer_time& t : rails.times) t = transfer_time(0, t.bytes_per_s());
    const auto outlooks = rails.outlooks();
    const std::int64_t bytes = 1 + std::int64_t(random() % (1 << (1 + random() % 24)));
    INFO("round " << round << ", " << bytes << " bytes over " << n);
    std::vector<std::int64_t> exact(n), shares(n);
    const double best_s = split(outlooks, bytes, 1, exact);
    split_by_dichotomy(outlooks, bytes, shares);
    REQUIRE(std::accumulate(shares.begin(), shares.end(), std::int64_t{0}) == bytes);
    double byte_s = 0;
    for (std::size_t i = 0; i < n; ++i) {
      REQUIRE(shares[i] >= 0);
      byte_s = std::max(
          byte_s, finish_s(outlooks[i], double(shares[i] + 4)) -
                      finish_s(outlooks[i], double(std::max<std::int64_t>(0, shares[i] - 4))));
    }
    CHECK(std::abs(end_of(outlooks, shares) - best_s) <= byte_s);
  }
  // Three rails of equal rates and other latencies get equal parts, and the last one is late.
  const std::vector<transfer_time> times{{1e-5, 1e8}, {2e-5, 1e8}, {9e-4, 1e8}};
  const std::vector<rail_outlook> three{{&times[0]}, {&times[1]}, {&times[2]}};
  std::vector<std::int64_t> exact(3), shares(3);
  const double best_s = split(three, 300000, 1, exact);
  split_by_dichotomy(three, 300000, shares);
  CHECK(shares == std::vector<std::int64_t>(3, 100000));
  CHECK(end_of(three, shares) == Approx(9e-4 + 1e-3));
  CHECK(best_s == Approx((3e-3 + 9.3e-4) / 3));
}

TEST_CASE("rails of ratio r carry 1 + 1/r of what the fast one carries; equal parts 2/r") {
  for (const double r : {1.0, 2.0, 4.0, 10.0, 20.0}) {
    const std::vector<transfer_time> times{transfer_time(0, 1e8), transfer_time(0, 1e8 / r)};
    const std::vector<rail_outlook> rails{{&times[0], 0}, {&times[1], 0}};
    std::vector<std::int64_t> shares(2);
    const double alone_s = times[0].time_s(1e7);
    CHECK(alone_s / split(rails, 10000000, 1, shares) == Approx(1 + 1 / r).epsilon(1e-5));
    const std::vector<double> equal{1, 1};
    split_by_weight(equal, 10000000, shares);
    CHECK(alone_s / end_of(rails, shares) == Approx(2 / r).epsilon(1e-5));
  }
}

TEST_CASE("a busy fast rail is waited for when that is quicker") {
  const std::vector<transfer_time> times{transfer_time(1e-5, 1e9), transfer_time(1e-5, 1e7)};
  const std::vector<rail_outlook> rails{{&times[0], 1e-3}, {&times[1], 0}};
  // Break-even where the slow rail needs as long as the fast one is busy and then needs.
  CHECK(soonest(rails, 9000) == 1);
  CHECK(soonest(rails, 11000) == 0);
  std::vector<std::int64_t> shares(2);
  split(rails, 9000, 1, shares);
  CHECK(shares == std::vector<std::int64_t>{0, 9000});
  split(rails, 20000, 12000, shares);
  CHECK(shares == std::vector<std::int64_t>{20000, 0});
}

TEST_CASE("strategies: what an idle rail carries next") {
  const std::vector<transfer_time> times{transfer_time(1e-5, 1e8), transfer_time(5e-5, 1e8)};
  std::vector<rail_outlook> outlooks{{&times[0], 0}, {&times[1], 0}};
  const std::vector<std::int64_t> sizes(3, 100);
  const rails_view view{outlooks, 1000};
  const auto small = [&](const char* name, std::size_t rail) {
    return make_strategy(name)->small(rail, view, sizes);
  };
  CHECK(small("auto", 0) == 3);
  CHECK(small("auto", 1) == 0);
  CHECK(small("aggregate", 0) == 3);
  CHECK(small("split", 0) == 1);
  CHECK(small("greedy", 1) == 1);
  CHECK(small("dichotomy", 0) == 3);
  CHECK(small("dichotomy", 1) == 0);
  CHECK(small("weighted", 0) == 1);
  CHECK(small("weighted", 1) == 0);
  CHECK(small("equal", 1) == 0);

  const std::vector<std::int64_t> none{0, 0}, some{100000, 0}, all{500000, 500000};
  const auto large = [&](const char* name, std::size_t rail,
                         const std::vector<std::int64_t>& carried, std::int64_t waiting) {
    const std::int64_t left = 1000000 - carried[0] - carried[1];
    return make_strategy(name)->large(rail, view, {1000000, left, carried, waiting});
  };
  CHECK(large("equal", 0, some, 900000) == 400000);
  CHECK(large("equal", 1, some, 900000) == 500000);
  CHECK(large("weighted", 1, none, 1000000) == 500000);
  CHECK(large("greedy", 1, none, 1000000) == 1000000);
  CHECK(large("greedy", 1, some, 900000) == 0);
  CHECK(large("aggregate", 0, some, 900000) == 900000);
  CHECK(std::abs(large("auto", 0, none, 1000000) - 502000) <= 1);
  // What waits behind the message is shared as well: the first rail takes all of this one.
  CHECK(large("split", 0, none, 3000000) == 1000000);
  // But not by dichotomy.
  CHECK(std::abs(large("dichotomy", 0, none, 3000000) - 502000) <= 1);
  outlooks[1].busy_s = 1;
  CHECK(large("auto", 0, none, 1000000) == 1000000);
  CHECK(large("auto", 1, none, 1000000) == 0);
  CHECK_THROWS_AS(make_strategy("best"), railpass::error);
}

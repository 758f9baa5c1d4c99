// SPDX-License-Identifier: BSL-1.0
//
// Which calls are checked: first calls of arms, a share of all calls, and no fault for ever.
#include "railpass/select/lockstep/check_schedule.hpp"

#include "railpass/select/lockstep/followed_context.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

#include <array>
#include <cmath>
#include <random>
#include <vector>

using namespace railpass::select;

TEST_CASE("without a stride no call is checked") {
  check_schedule s;
  s.follow(0, 9, 0, 1);
  CHECK(s.next() == check_schedule::never);
  CHECK(!s.take(0, 1, 7));
  s.follow(10, 1, 1, 1);
  CHECK(s.take(1, 1, 7));
  s.follow(0, 1, 2, 1);
  CHECK(s.next() == check_schedule::never);
}

TEST_CASE("the first call of each arm is checked once") {
  check_schedule s;
  s.follow(1000, 9, 0, 0);
  CHECK(s.next() == 0);
  CHECK(s.take(0, 0, 7));
  CHECK(s.next() > 0);
  CHECK(s.take(1, 5, 7));
  CHECK(!s.take(2, 5, 7));
  CHECK(s.take(3, 511, 7));
  CHECK(!s.take(4, 512, 7));  // no room for its first call
  s.follow(1000, 0, 5, 5);
  CHECK(!s.take(6, 9, 7));
  s.follow(1000, 1, 7, 9);
  CHECK(s.next() == 7);
  CHECK(s.take(7, 9, 7));
  CHECK(!s.take(8, 10, 7));  // the plan pays for one
}

TEST_CASE("with stride 1 every call is checked, first checks or not") {
  check_schedule s;
  s.follow(1, 0, 0, 0);
  for (std::int64_t call = 0; call < 100; ++call) {
    if (call % 7 == 0) s.follow(1, 0, call, 0);
    CHECK(s.take(call, call % 3 == 0 ? 4 : 0, 7));
  }
}

TEST_CASE("plans that come often neither put checks off nor add checks") {
  for (const int epoch : {1, 3, 16, 100, 1000}) {
    check_schedule s;
    int checks = 0;
    for (std::int64_t call = 0; call < 100000; ++call) {
      if (call % epoch == 0) s.follow(50, 1, call, 3);
      if (s.take(call, 3, 7)) ++checks;
    }
    CAPTURE(epoch, checks);
    CHECK(std::abs(checks - 2000) < 100);
  }
}

TEST_CASE("a fault is met as soon as promised, at random and in a period") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937 random(seed);
  constexpr int stride = 20, rounds = 4000, n = 10000;
  constexpr double f = 1e-3;
  for (const bool periodic : {false, true}) {
    int met = 0;
    for (int round = 0; round < rounds; ++round) {
      check_schedule s;
      s.follow(stride, 1, 0, 1);
      const auto offset = std::int64_t(random() % 1000);
      std::bernoulli_distribution fails(f);
      for (std::int64_t call = 0; call < n; ++call) {
        const bool wrong = periodic ? call % 1000 == offset : fails(random);
        if (s.take(call, 1, std::uint32_t(round)) && wrong) {
          ++met;
          break;
        }
      }
    }
    const double promised = 1 - std::pow(1 - f, double(n) / stride);  // 0.39
    const double deviation = std::sqrt(promised * (1 - promised) / rounds);
    CAPTURE(periodic, promised, double(met) / rounds);
    CHECK(std::abs(double(met) / rounds - promised) < 4 * deviation);
  }
}

TEST_CASE("a context's checked calls are events, also if nothing is timed") {
  followed_context c{.id = {}};
  std::array<std::int32_t, plan_words::most> words{};
  plan_words::write({.incumbent = 2, .timed_stride = 0, .check_stride = 30}, 0, words);
  c.activate(words);
  int checks = 0;
  for (; c.calls < 3000;) {
    if (c.calls != c.next_event) {
      ++c.calls;
      continue;
    }
    checks += c.checks.take(c.calls, 2, 1) ? 1 : 0;
    c.end_eventful(2);
  }
  CHECK(checks > 80);
  CHECK(checks < 120);
}

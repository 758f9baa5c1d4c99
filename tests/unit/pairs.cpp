// SPDX-License-Identifier: BSL-1.0
#include "railpass/select/pairs.hpp"

#include "support/catch.hpp"

#include <cmath>
#include <limits>
#include <random>

using namespace railpass::select;

namespace {

/// `meetings` of one native call with some of an arm that takes 1 / `gain` of native's time; the
/// machine's speed is another one in each of them.
all_meetings drawn(std::mt19937& random, int meetings, double gain, double noise) {
  std::lognormal_distribution<double> call(0, noise), speed(0, 0.5);
  all_meetings all;
  for (int m = 0; m < meetings; ++m) {
    const double unit_s = 1e-5 * speed(random);
    std::vector<double> own_s(8), native_s(1);
    for (double& t : own_s) t = unit_s / gain * call(random);
    for (double& t : native_s) t = unit_s * call(random);
    all.add(own_s, native_s);
  }
  return all;
}

}  // namespace

TEST_CASE("one meeting has no error that could be told, nor have too few calls") {
  all_meetings all;
  CHECK_FALSE(all.record());
  all.add(std::vector{1.0, 3.0, 1.0}, std::vector{2.0, 2.0});
  REQUIRE(all.record());
  CHECK(all.record()->pairs == 2);
  CHECK(all.record()->wins == 1);
  CHECK(all.record()->gain == Approx(std::log(2)));
  CHECK_FALSE(all.record()->deviation);
  all.add(std::vector{1.0}, std::vector{2.0});
  CHECK(all.record()->pairs == 3);
  CHECK_FALSE(all.record()->deviation);
  for (int m = 0; m < 10; ++m) all.add(std::vector{1.0}, std::vector{2.0});
  CHECK(all.record()->deviation);
}

TEST_CASE("calls that the machine holds up hide nothing, an arm's own slow calls count") {
  all_meetings held_up, two_peaked;
  for (int m = 0; m < 50; ++m) {
    held_up.add(std::vector{m == 7 ? 500.0 : 1.0}, std::vector{m == 30 ? 900.0 : 2.0});
    two_peaked.add(std::vector{m % 10 == 0 ? 20.0 : 1.0}, std::vector{2.0});
  }
  CHECK(held_up.record()->gain == Approx(std::log(2)));
  CHECK(held_up.record()->gain > 2 * *held_up.record()->deviation);
  CHECK(two_peaked.record()->gain == Approx(std::log(2 / 2.9)));
}

TEST_CASE(
    "a gain less than what slow calls may take is not claimed, as long as they may be the "
    "arm's own") {
  all_meetings all;
  // One call in thirty takes three times as long, and too few of native's tell whether its do, too.
  for (int m = 0; m < 30; ++m) {
    std::vector<double> own_s(8, 1.0);
    if (m % 4 == 0) own_s[std::size_t(m) % 8] = 3;
    all.add(own_s, std::vector{1.05});
  }
  const pair_record r = *all.record();
  CHECK(r.gain == Approx(std::log(1.05)));
  CHECK(r.gain < 1.96 * *r.deviation);
}

TEST_CASE("the gain of an arm that is many times faster is not hidden") {
  all_meetings all;
  for (int m = 0; m < 200; ++m) all.add(std::vector(16, 1.0), std::vector{20.0});
  CHECK(all.record()->pairs == 200);
  CHECK(all.record()->gain == Approx(std::log(20)));
}

TEST_CASE("the interval covers the truth as often as it says, with few and with many meetings") {
  std::mt19937 random(1);
  const int meetings = GENERATE(2, 3, 5, 10, 40);
  const double gain = GENERATE(0.8, 1.0, 2.0), noise = GENERATE(0.05, 0.2);
  int covered = 0, claims = 0, false_claims = 0;
  const int trials = 2000;
  for (int i = 0; i < trials; ++i) {
    const pair_record r = *drawn(random, meetings, gain, noise).record();
    const double reach =
        r.deviation ? 1.96 * *r.deviation : std::numeric_limits<double>::infinity();
    covered += std::abs(r.gain - std::log(gain)) <= reach;
    claims += std::abs(r.gain) > reach;
    false_claims += std::abs(r.gain) > reach && (r.gain > 0) != (gain > 1);
  }
  INFO(meetings << " meetings, gain " << gain << ", noise " << noise);
  CHECK(covered > 0.92 * trials);
  CHECK(false_claims < 0.07 * trials);
  if (meetings >= 10 && gain != 1.0 && noise < 0.1) CHECK(claims > 0.99 * trials);
}

TEST_CASE("slow calls of the machine hide nothing, those of one side alone are not left out") {
  // Shares of runs in which a gain and a loss are claimed; an arm's calls take 1 / `gain` of
  // native's. Of all calls some are slow, with a heavy tail, and of each side's own some take 10
  // times as long.
  struct slow_shares {
    double all = 0, own = 0, native = 0;
  };
  struct shares {
    double gains = 0, losses = 0;
  };
  const auto claims = [](double gain, slow_shares slow) {
    std::mt19937 random(1);
    std::lognormal_distribution<double> call(0, 0.03), speed(0, 0.3);
    std::uniform_real_distribution<double> some(0, 1);
    const auto taken = [&](double ten_times) {
      double times = call(random);
      if (some(random) < slow.all) times *= std::min(300.0, 1.5 * std::pow(some(random), -1 / 1.2));
      return some(random) < ten_times ? 10 * times : times;
    };
    shares result;
    constexpr int runs = 200;
    for (int run = 0; run < runs; ++run) {
      all_meetings all;
      for (int m = 0; m < 20; ++m) {
        const double unit_s = 2e-4 * speed(random);
        std::vector<double> own_s(14), native_s(7);
        for (double& t : own_s) t = unit_s / gain * taken(slow.own);
        for (double& t : native_s) t = unit_s * taken(slow.native);
        all.add(own_s, native_s);
      }
      const pair_record r = *all.record();
      result.gains += r.gain > 1.96 * *r.deviation ? 1. / runs : 0;
      result.losses += -r.gain > 1.96 * *r.deviation ? 1. / runs : 0;
    }
    return result;
  };
  CHECK(claims(1.1, {.all = 0.03}).gains > 0.8);
  CHECK(claims(1.1, {.all = 0.03}).losses < 0.03);
  CHECK(claims(0.9, {.all = 0.03}).losses > 0.8);
  CHECK(claims(0.9, {.all = 0.03}).gains < 0.03);
  CHECK(claims(1, {.all = 0.2}).gains < 0.05);
  CHECK(claims(1, {.all = 0.2}).losses < 0.05);
  // 15 % slower, or faster, in the mean.
  CHECK(claims(1.1, {.own = 0.03}).gains < 0.03);
  CHECK(claims(0.9, {.native = 0.03}).losses < 0.1);  // in some runs native has none
  CHECK(claims(1.1, {.all = 0.03, .own = 0.03}).gains < 0.15);
  CHECK(claims(1.1, {.own = 0.1}).losses > 0.9);
}

TEST_CASE("records of two communicators count by their pairs") {
  const pair_record a{.pairs = 10, .wins = 9, .gain = 0.4, .deviation = 0.1};
  const pair_record b{.pairs = 30, .wins = 3, .gain = -0.2, .deviation = 0.2};
  const pair_record both = joined(a, b);
  CHECK(both.pairs == 40);
  CHECK(both.wins == 12);
  CHECK(both.gain == Approx(-0.05));
  CHECK(both.deviation == Approx(std::hypot(0.025, 0.15)));
  const pair_record one{.pairs = 1, .wins = 0, .gain = -3};
  CHECK(joined(a, one).gain == 0.4);
  CHECK(joined(one, a).deviation == 0.1);
  CHECK_FALSE(joined(one, one).deviation);
}

// SPDX-License-Identifier: BSL-1.0
#include "railpass/select/pairs.hpp"

#include "support/catch.hpp"

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

TEST_CASE("one meeting has no error that could be told") {
  all_meetings all;
  CHECK_FALSE(all.record());
  all.add(std::vector{1.0, 3.0, 1.0}, std::vector{2.0, 2.0});
  REQUIRE(all.record());
  CHECK(all.record()->pairs == 2);
  CHECK(all.record()->wins == 1);
  CHECK(all.record()->gain == Approx(std::log(2 / (5. / 3))));
  CHECK_FALSE(all.record()->deviation);
  all.add(std::vector{1.0, 1.0, 3.0}, std::vector{2.0});
  CHECK(all.record()->pairs == 3);
  CHECK(all.record()->deviation == Approx(0).margin(1e-9));
}

TEST_CASE("calls that the machine holds up hide nothing, an arm's own slow calls count") {
  all_meetings held_up, two_peaked;
  for (int m = 0; m < 50; ++m) {
    held_up.add(std::vector{m == 7 ? 500.0 : 1.0}, std::vector{m == 30 ? 900.0 : 2.0});
    two_peaked.add(std::vector{m % 10 == 0 ? 20.0 : 1.0}, std::vector{2.0});
  }
  CHECK(held_up.record()->gain == Approx(std::log(2)).margin(0.1));
  CHECK(held_up.record()->gain > 2 * *held_up.record()->deviation);
  CHECK(two_peaked.record()->gain == Approx(std::log(2 / 2.9)));
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
    const double reach = 1.96 * *r.deviation;
    covered += std::abs(r.gain - std::log(gain)) <= reach;
    claims += std::abs(r.gain) > reach;
    false_claims += std::abs(r.gain) > reach && (r.gain > 0) != (gain > 1);
  }
  INFO(meetings << " meetings, gain " << gain << ", noise " << noise);
  CHECK(covered > 0.92 * trials);
  CHECK(false_claims < 0.07 * trials);
  if (meetings >= 10 && gain != 1.0 && noise < 0.1) CHECK(claims > 0.99 * trials);
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

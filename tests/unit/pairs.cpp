// SPDX-License-Identifier: BSL-1.0
#include "railpass/select/statistics/pairs.hpp"

#include "support/catch.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace railpass::select;

namespace {

/// A call's time in units of the machine's: some calls in a hundred take up to five times as long.
double noisy(std::mt19937& random, double noise, double slow_share) {
  std::uniform_real_distribution<double> some(0, 1);
  const double times = std::lognormal_distribution<double>(-noise * noise / 2, noise)(random);
  return some(random) < slow_share ? times * (1 + 4 * some(random)) : times;
}

/// `meetings` of one native call with some of an arm that takes 1 / `gain` of native's time; the
/// machine's speed is another one in each of them.
all_meetings drawn(std::mt19937& random, int meetings, double gain, double noise,
                   double slow_share = 0) {
  std::lognormal_distribution<double> speed(0, 0.5);
  all_meetings all;
  for (int m = 0; m < meetings; ++m) {
    const double unit_s = 1e-5 * speed(random);
    std::vector<double> own_s(8), native_s(1);
    for (double& t : own_s) t = unit_s / gain * noisy(random, noise, slow_share);
    for (double& t : native_s) t = unit_s * noisy(random, noise, slow_share);
    all.add(own_s, native_s, 100 * (m + 1));
  }
  return all;
}

/// The result for the only arm of a context.
std::optional<pair_record> record_of(const all_meetings& arm) {
  all_meetings::pooled_spread of_context;
  of_context.add(arm);
  return arm.record(of_context);
}

double reach_of(const pair_record& r) {
  return r.deviation ? 1.96 * *r.deviation : std::numeric_limits<double>::infinity();
}

}  // namespace

TEST_CASE("fewer than four meetings have no error that could be told") {
  all_meetings all;
  CHECK_FALSE(record_of(all));
  all.add(std::vector{1.0, 3.0, 1.0}, std::vector{2.0, 3.0}, 10);
  REQUIRE(record_of(all));
  CHECK(record_of(all)->pairs == 2);
  CHECK(record_of(all)->wins == 1);
  CHECK(record_of(all)->gain == Approx(std::log(1.5)));
  all.add(std::vector{1.0}, std::vector{2.0}, 20);
  all.add(std::vector{1.0}, std::vector{2.0}, 30);
  CHECK(record_of(all)->pairs == 4);
  CHECK_FALSE(record_of(all)->deviation);
  all.add(std::vector{1.0}, std::vector{2.0}, 40);
  CHECK(record_of(all)->deviation);
}

TEST_CASE("arms of a context with few comparisons each share their spread") {
  std::mt19937 random(3);
  int known = 0, covered = 0;
  const int trials = 1000;
  for (int i = 0; i < trials; ++i) {
    std::vector<all_meetings> arms;
    all_meetings::pooled_spread of_context;
    for (const double gain : {1.1, 1.2, 1.3}) {
      arms.push_back(drawn(random, 2, gain, 0.1));
      of_context.add(arms.back());
    }
    const pair_record r = *arms[1].record(of_context);
    CHECK_FALSE(record_of(arms[1])->deviation);
    known += r.deviation.has_value();
    covered += std::abs(r.gain - std::log(1.2)) <= reach_of(r);
  }
  CHECK(known == trials);
  CHECK(covered > 0.9 * trials);

  all_meetings::pooled_spread too_few;
  const all_meetings one = drawn(random, 2, 1.2, 0.1), other = drawn(random, 1, 1.2, 0.1);
  too_few.add(one);
  too_few.add(other);
  CHECK_FALSE(one.record(too_few)->deviation);
}

TEST_CASE("slow calls count as the program pays them") {
  all_meetings two_peaked;
  for (int m = 0; m < 50; ++m)
    two_peaked.add(std::vector{m % 10 == 0 ? 20.0 : 1.0}, std::vector{2.0}, m);
  CHECK(record_of(two_peaked)->gain == Approx(std::log(2 / 2.9)));
}

TEST_CASE("a gain is not claimed if slow calls may take it, which native met too seldom") {
  all_meetings all;
  for (int m = 0; m < 30; ++m) {
    std::vector<double> own_s(8, 0.9);
    if (m % 4 == 0) own_s[std::size_t(m) % 8] = 3;
    all.add(own_s, std::vector{1.0}, 50 * m);
  }
  const pair_record r = *record_of(all);
  CHECK(std::abs(r.gain) < reach_of(r));
}

TEST_CASE("a meeting stands for the arm's calls since the one before") {
  all_meetings all;
  all.add(std::vector{1.0}, std::vector{1.0}, 10);
  all.add(std::vector{1.0}, std::vector{3.0}, 1010);
  CHECK(record_of(all)->gain == Approx(std::log((10 * 1 + 1000 * 3) / 1010.0)));
}

TEST_CASE("the gain of an arm that is many times faster is not hidden") {
  all_meetings all;
  for (int m = 0; m < 200; ++m) all.add(std::vector(16, 1.0), std::vector{20.0}, 10 * m);
  CHECK(record_of(all)->pairs == 200);
  CHECK(record_of(all)->gain == Approx(std::log(20)));
}

TEST_CASE("the interval covers the truth as often as it says, with few and with many meetings") {
  std::mt19937 random(1);
  const int meetings = GENERATE(4, 5, 10, 40, 100);
  const double gain = GENERATE(0.8, 1.0, 2.0), noise = GENERATE(0.05, 0.2),
               slow_share = GENERATE(0.0, 0.02);
  int covered = 0, claims = 0, false_claims = 0;
  const int trials = 1000;
  for (int i = 0; i < trials; ++i) {
    const pair_record r = *record_of(drawn(random, meetings, gain, noise, slow_share));
    const double reach = reach_of(r);
    covered += std::abs(r.gain - std::log(gain)) <= reach;
    claims += std::abs(r.gain) > reach;
    false_claims += std::abs(r.gain) > reach && (r.gain > 0) != (gain > 1);
  }
  INFO(meetings << " meetings, gain " << gain << ", noise " << noise << ", slow calls "
                << slow_share);
  CHECK(covered > 0.9 * trials);
  CHECK(false_claims < 0.07 * trials);
  if (meetings >= 10 && gain != 1.0 && noise < 0.1 && slow_share == 0)
    CHECK(claims > 0.99 * trials);
  if (meetings >= 100 && gain == 2.0) CHECK(claims > 0.99 * trials);
}

TEST_CASE("meetings that follow one another may be alike") {
  std::mt19937 random(2);
  std::normal_distribution<double> change(0, 0.1);
  int covered = 0;
  const int trials = 500;
  for (int i = 0; i < trials; ++i) {
    all_meetings all;
    for (int m = 0, calls = 0; m < 320; ++m) {
      static double own = 1;
      if (m % 8 == 0) own = std::exp(change(random));
      all.add(std::vector(4, own), std::vector{1.0}, calls += 10);
    }
    const pair_record r = *record_of(all);
    covered += std::abs(r.gain + 0.005) <= reach_of(r);
  }
  CHECK(covered > 0.9 * trials);
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

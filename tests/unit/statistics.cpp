// SPDX-License-Identifier: BSL-1.0
#include "railpass/base/statistics.hpp"

#include "support/catch.hpp"

#include <numeric>

using namespace railpass;

namespace {

// Type 7 as its definition reads, by sorting.
double sorted_quantile(std::vector<double> x, double q) {
  std::sort(x.begin(), x.end());
  const double place = q * double(x.size() - 1);
  const auto low = std::size_t(place);
  const auto high = std::min(low + 1, x.size() - 1);
  return x[low] + (place - double(low)) * (x[high] - x[low]);
}

std::vector<double> random_sample(std::mt19937_64& random, std::size_t size) {
  std::vector<double> x(size);
  for (double& v : x) v = double(random() % 50) / 7 - 3;  // with ties
  return x;
}

}  // namespace

TEST_CASE("quantiles, median and deviation agree with sorting") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const auto x = random_sample(random, 1 + random() % 40);
    for (const double q : {0.0, 0.1, 0.25, 0.5, 0.9, 0.99, 1.0})
      CHECK(quantile(x, q) == Approx(sorted_quantile(x, q)).margin(1e-12));
    const double middle = sorted_quantile(x, 0.5);
    std::vector<double> distances;
    for (const double v : x) distances.push_back(std::abs(v - middle));
    CHECK(median(x) == Approx(middle).margin(1e-12));
    CHECK(median_absolute_deviation(x) == Approx(sorted_quantile(distances, 0.5)).margin(1e-12));
  }
}

TEST_CASE("the robust spread of a normal sample is its standard deviation, outliers or not") {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal(10, 2);
  std::vector<double> x(20000);
  for (double& v : x) v = normal(random);
  CHECK(robust_spread(x) == Approx(2).epsilon(0.05));
  for (std::size_t i = 0; i < x.size(); i += 20) x[i] = 1e6;
  CHECK(robust_spread(x) == Approx(2).epsilon(0.1));
}

TEST_CASE("outliers are rejected around the median and order is kept") {
  const std::vector<double> x{1.0, 1.1, 50, 0.9, 1.05, 0.95, -30};
  CHECK(without_outliers(x) == std::vector<double>{1.0, 1.1, 0.9, 1.05, 0.95});
  const std::vector<double> coarse{3, 3, 3, 3, 3.1, 9};
  CHECK(without_outliers(coarse) == std::vector<double>{3, 3, 3, 3, 3.1});
  CHECK(without_outliers(std::vector<double>{4}) == std::vector<double>{4});
  for (unsigned seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const auto sample = random_sample(random, 1 + random() % 10);
    CHECK_FALSE(without_outliers(sample, 0.01).empty());
  }
}

TEST_CASE("the bootstrap interval covers the true ratio about as often as it says") {
  int covered = 0;
  const int trials = 300;
  for (int trial = 0; trial < trials; ++trial) {
    std::mt19937_64 random(unsigned(trial) + 1000);
    std::lognormal_distribution<double> noise(0, 0.2);
    std::vector<double> a(31), b(31);
    for (double& v : a) v = 3 * noise(random);
    for (double& v : b) v = 2 * noise(random);
    const interval i = ratio_of_medians(a, b, 0.9, 300, unsigned(trial));
    REQUIRE(i.low <= i.high);
    covered += i.low <= 1.5 && 1.5 <= i.high;
  }
  CHECK(covered > 0.82 * trials);
  CHECK(covered < 0.98 * trials);
}

TEST_CASE("the bootstrap is repeatable and exact for constant samples") {
  const std::vector<double> a{3, 3, 3}, b{2, 2};
  CHECK(ratio_of_medians(a, b).low == 1.5);
  CHECK(ratio_of_medians(a, b).high == 1.5);
  const std::vector<double> c{1, 2, 3, 4, 5}, d{2, 3, 4, 5, 7};
  CHECK(ratio_of_medians(c, d, 0.9, 200, 5).low == ratio_of_medians(c, d, 0.9, 200, 5).low);
}

TEST_CASE("a ratio of pairs forgets what disturbs both, and its bounds hold as often as they say") {
  const std::vector<double> one{3}, other{2};
  CHECK(ratio_of_pairs(one, other).ratio == Approx(1.5));
  CHECK(ratio_of_pairs(one, other).bounds.low == Approx(1.5));
  int covered = 0;
  const int trials = 1000;
  for (int trial = 0; trial < trials; ++trial) {
    std::mt19937_64 random(unsigned(trial) + 1);
    std::lognormal_distribution<double> noise(0, 0.1), weather(0, 3);
    std::vector<double> a(40), b(40);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double w = weather(random);
      a[i] = 3 * w * noise(random);
      b[i] = 2 * w * noise(random);
    }
    const paired_ratio r = ratio_of_pairs(a, b);
    REQUIRE(std::abs(r.ratio / 1.5 - 1) < 0.15);
    covered += r.bounds.low <= 1.5 && 1.5 <= r.bounds.high;
  }
  CHECK(covered > 0.92 * trials);
  CHECK(covered < 0.975 * trials);
}

TEST_CASE("bounds of the median hold as often as they say, whatever the distribution") {
  const std::vector<double> five{3, 1, 5, 2, 4};
  CHECK(bounds_of_median(five).bounds.low == 1);
  CHECK(bounds_of_median(five).bounds.high == 5);
  CHECK(bounds_of_median(five).confidence == Approx(1 - 2.0 / 32));  // all above or all below
  const std::vector<double> nine{1, 2, 3, 4, 5, 6, 7, 8, 9};
  CHECK(bounds_of_median(nine).bounds.low == 2);
  CHECK(bounds_of_median(nine).bounds.high == 8);
  CHECK(bounds_of_median(nine).confidence == Approx(1 - 2 * 10.0 / 512));
  CHECK(bounds_of_median(std::vector<double>{7}).confidence == 0);
  std::vector<double> many(3000);  // 2^-3000 is no double
  std::iota(many.begin(), many.end(), 0.0);
  CHECK(bounds_of_median(many).bounds.low == Approx(1500 - 0.98 * std::sqrt(3000)).margin(2));
  CHECK(bounds_of_median(many).bounds.high == Approx(1500 + 0.98 * std::sqrt(3000)).margin(2));
  std::mt19937_64 random(5);
  for (const std::size_t size : {6, 9, 20, 51}) {
    CAPTURE(size);
    int holds = 0;
    const int trials = 4000;
    double confidence = 0;
    for (int t = 0; t < trials; ++t) {
      std::exponential_distribution<double> draw;
      std::vector<double> sample(size);
      for (double& x : sample) x = draw(random);
      const median_bounds found = bounds_of_median(sample);
      confidence = found.confidence;
      holds += found.bounds.low <= std::log(2) && std::log(2) <= found.bounds.high;
    }
    CHECK(confidence >= 0.95);
    CHECK(std::abs(double(holds) / trials - confidence) < 0.015);
  }
}

TEST_CASE("nonsense is refused") {
  CHECK_THROWS_AS(bounds_of_median(std::vector<double>{}), error);
  const std::vector<double> none, one{1};
  CHECK_THROWS_AS(median(none), error);
  CHECK_THROWS_AS(quantile(one, 1.5), error);
  CHECK_THROWS_AS(quantile(one, std::nan("")), error);
  CHECK_THROWS_AS(ratio_of_medians(none, one), error);
  CHECK_THROWS_AS(ratio_of_medians(one, one, 1.0), error);
  CHECK_THROWS_AS(ratio_of_medians(one, one, 0.9, 0), error);
  CHECK_THROWS_AS(ratio_of_pairs(none, none), error);
  CHECK_THROWS_AS(ratio_of_pairs(one, std::vector<double>{1, 2}), error);
}

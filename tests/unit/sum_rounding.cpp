// SPDX-License-Identifier: BSL-1.0
#include "lib/buffers/sum_rounding.hpp"

#include "support/catch.hpp"
#include "support/seed.hpp"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

using railpass::internal::differ_by_rounding;

namespace {

template <class T>
bool alike(T a, T b, T magnitude, int terms) {
  return differ_by_rounding<T>({&a, 1}, {&b, 1}, {&magnitude, 1}, terms);
}

}  // namespace

TEMPLATE_TEST_CASE("sums in any order are alike, also where next to nothing is left of the terms",
                   "", float, double, long double) {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> mantissa(-1, 1), exponent(-10, 10);
  bool differed = false;
  for (int round = 0; round < 2000; ++round) {
    const int n = 2 + int(random() % 40);
    std::vector<TestType> terms(std::size_t(n), 0);
    TestType rest = 0, magnitude = 0;
    for (TestType& t : terms) rest += t = TestType(mantissa(random) * std::exp(exponent(random)));
    terms.back() -= rest;
    for (const TestType t : terms) magnitude += std::abs(t);
    const auto sum = [&] {
      std::shuffle(terms.begin(), terms.end(), random);
      TestType s = 0;
      for (const TestType t : terms) s += t;
      return s;
    };
    const TestType a = sum(), b = sum();
    differed = differed || a != b;
    REQUIRE(alike(a, b, magnitude, n));
    // One term less shows, unless it is among those that rounding takes.
    const TestType missing =
        *std::max_element(terms.begin(), terms.end(),
                          [](TestType x, TestType y) { return std::abs(x) < std::abs(y); });
    REQUIRE_FALSE(alike(a, b - missing, magnitude, n));
  }
  CHECK(differed);
}

TEST_CASE("what is no number must be none in both sums, unless it may come from an overflow") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                   infinite = std::numeric_limits<double>::infinity();
  CHECK(alike(nan, nan, nan, 2));
  CHECK_FALSE(alike(nan, 1.0, nan, 2));
  CHECK_FALSE(alike(nan, 1.0, 1.0, 2));
  CHECK_FALSE(alike(infinite, 1.0, 1.0, 2));
  CHECK(alike(infinite, 1e308, infinite, 3));
  CHECK(alike(nan, infinite, infinite, 3));
  CHECK(alike(0.0, -0.0, 0.0, 2));
}

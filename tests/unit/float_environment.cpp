// SPDX-License-Identifier: BSL-1.0
#include "railpass/base/float_environment.hpp"

#include "railpass/base/clock.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <thread>

using namespace railpass;

namespace {

constexpr int traps = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW;

// As the compiler sees it, these may be anything.
double unknown(double x) {
  volatile double y = x;
  return y;
}

}  // namespace

TEST_CASE("railpass computes without the program's traps and rounding, and leaves both") {
  for (const bool traps_on : {false, true})
    for (const int rounding : {FE_TONEAREST, FE_UPWARD}) {
      CAPTURE(traps_on, rounding);
      std::feclearexcept(FE_ALL_EXCEPT);
      if (traps_on) feenableexcept(traps);
      std::fesetround(rounding);
      double zero_log = 0, third = 0, in_thread = 0;
      int rounding_there = -1;
      {
        const own_float_environment own;
        const own_float_environment nested;
        zero_log = std::log(unknown(0));
        third = unknown(1) / unknown(3);
        rounding_there = std::fegetround();
        std::thread([&] { in_thread = unknown(1) / unknown(0); }).join();
      }
      const int raised = std::fetestexcept(traps), rounding_after = std::fegetround(),
                trapped = fegetexcept();
      fedisableexcept(traps);
      std::fesetround(FE_TONEAREST);
      CHECK(zero_log == -std::numeric_limits<double>::infinity());
      CHECK(in_thread == std::numeric_limits<double>::infinity());
      CHECK(third == 1.0 / 3);
      CHECK(rounding_there == FE_TONEAREST);
      CHECK(raised == 0);
      CHECK(rounding_after == rounding);
      CHECK(trapped == (traps_on ? traps : 0));
    }
}

TEST_CASE("what the program has raised stays raised") {
  std::feclearexcept(FE_ALL_EXCEPT);
  std::feraiseexcept(FE_DIVBYZERO);
  { const own_float_environment own; }
  const int raised = std::fetestexcept(traps);
  std::feclearexcept(FE_ALL_EXCEPT);
  CHECK(raised == FE_DIVBYZERO);
}

TEST_CASE("times are those of the clock, and their sums and differences are exact") {
  constexpr std::int64_t second = 1'000'000'000, years = 100'000'000 * second;
  std::mt19937_64 random(55);
  for (int round = 0; round < 100000; ++round) {
    const std::int64_t began = std::int64_t(random() % std::uint64_t(years >> random() % 40)),
                       took = std::int64_t(random() % std::uint64_t(second * 100 >> random() % 30));
    CAPTURE(began, took);
    std::feclearexcept(FE_ALL_EXCEPT);
    const double began_s = exact_seconds(began), ended_s = exact_seconds(began + took);
    volatile double took_s = ended_s - began_s;
    volatile double until_s = ended_s + 0x1p-19;
    const int raised = std::fetestexcept(FE_ALL_EXCEPT);
    REQUIRE(raised == 0);
    REQUIRE(took_s >= 0);
    const double tick_s = std::max(0x1p-30, std::ldexp(ended_s, -52));
    REQUIRE(std::abs(took_s - double(took) * 1e-9) <= 2 * tick_s);
    REQUIRE(std::abs(until_s - double(began + took) * 1e-9) <= 0x1p-19 + 2 * tick_s);
  }
}

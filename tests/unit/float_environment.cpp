// SPDX-License-Identifier: BSL-1.0
#include "railpass/base/float_environment.hpp"

#include "support/catch.hpp"

#include <cmath>
#include <limits>
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

// SPDX-License-Identifier: BSL-1.0
#include "railpass/select/lockstep/thinned.hpp"

#include "support/catch.hpp"

using namespace railpass::select;

TEST_CASE("quantiles of few times are exact, of many those of all their life") {
  thinned_times some;
  CHECK(some.empty());
  for (int i = 0; i <= 10; ++i) some.add(i);
  CHECK(some.quantile(0.1) == Approx(1));
  CHECK(some.quantile(0.5) == Approx(5));
  CHECK(some.quantile(0.9) == Approx(9));

  const int many = GENERATE(100, 1000, 12345);
  thinned_times stream;
  for (int i = 0; i < many; ++i) stream.add(i);
  for (const double q : {0.1, 0.5, 0.9})
    CHECK(stream.quantile(q) == Approx(q * many).margin(0.07 * many));
}

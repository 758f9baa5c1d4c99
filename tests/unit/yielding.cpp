// SPDX-License-Identifier: BSL-1.0
//
// A waiting rank yields at each poll, until yields cost turns of other programs.
#include "lib/base/yielding.hpp"

#include "support/catch.hpp"

using railpass::internal::yielding;

namespace {

// A rank that polls once in a microsecond for `seconds`, with yields of `yield_s` each.
struct waiting_rank {
  yielding yields{true};
  double now_s = 100, away_s = 0;
  int times = 0;

  void wait(double seconds, double yield_s) {
    for (const double until_s = now_s + seconds; now_s < until_s; now_s += 1e-6) {
      if (!yields.is_due(now_s)) continue;
      yields.yielded(now_s, now_s + yield_s);
      now_s += yield_s;
      away_s += yield_s;
      ++times;
    }
  }
};

}  // namespace

TEST_CASE("a waiting rank yields at each poll while yields are short") {
  waiting_rank rank;
  rank.wait(0.01, 1e-6);
  CHECK(rank.times >= 4990);
  rank.wait(0.01, 0.9 * yielding::turn_s);  // ranks that share the core compute for a while
  CHECK(rank.times >= 5000);
}

TEST_CASE("a waiting rank keeps its core longer than turns of other programs") {
  for (const double turn_s : {2e-3, 3e-3, 30e-3}) {
    waiting_rank rank;
    rank.wait(1, turn_s);
    rank.away_s = 0;
    const double began_s = rank.now_s;
    rank.wait(10, turn_s);
    CHECK(rank.away_s / (rank.now_s - began_s) <= turn_s / (turn_s + yielding::most_s) + 0.01);
    CHECK(rank.away_s > 0);
  }
}

TEST_CASE("a waiting rank yields at each poll again soon after other programs have ended") {
  waiting_rank rank;
  rank.wait(1, 3e-3);
  rank.wait(0.03, 1e-6);
  rank.times = 0;
  rank.wait(0.01, 1e-6);
  CHECK(rank.times >= 4990);
}

// SPDX-License-Identifier: BSL-1.0
//
// A waiting rank yields at each poll, until yields cost turns of other programs.
#include "lib/base/yielding.hpp"

#include "support/catch.hpp"

#include <cstdint>

using railpass::internal::yielding;

namespace {

// A rank that polls once in a microsecond, with yields of `yield_ns` each. Times in nanoseconds.
struct waiting_rank {
  yielding yields{true};
  std::int64_t now = 100, away = 0;
  int times = 0;

  void wait(std::int64_t time, std::int64_t yield_ns) {
    for (const std::int64_t until = now + time; now < until; now += 1000) {
      if (!yields.is_due(now)) continue;
      yields.yielded(now, now + yield_ns);
      now += yield_ns;
      away += yield_ns;
      ++times;
    }
  }
};

constexpr std::int64_t us = 1000, ms = 1000 * us;

}  // namespace

TEST_CASE("a waiting rank yields at each poll while yields are short") {
  waiting_rank rank;
  rank.wait(10 * ms, us);
  CHECK(rank.times == 5000);
  rank.wait(10 * ms, yielding::turn_ns);  // ranks that share the core compute for a while
  CHECK(rank.times == 5010);
}

TEST_CASE("a waiting rank keeps its core longer than turns of other programs") {
  for (const std::int64_t turn : {2 * ms, 3 * ms, 30 * ms}) {
    waiting_rank rank;
    rank.wait(1000 * ms, turn);
    rank.away = 0;
    const std::int64_t began = rank.now;
    rank.wait(10000 * ms, turn);
    CHECK(double(rank.away) / double(rank.now - began) <=
          double(turn) / double(turn + yielding::most_ns) + 0.01);
    CHECK(rank.away > 0);
  }
}

TEST_CASE("a waiting rank yields at each poll again soon after other programs have ended") {
  waiting_rank rank;
  rank.wait(1000 * ms, 3 * ms);
  rank.wait(30 * ms, us);
  rank.times = 0;
  rank.wait(10 * ms, us);
  CHECK(rank.times == 5000);
}

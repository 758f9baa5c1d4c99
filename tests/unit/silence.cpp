// SPDX-License-Identifier: BSL-1.0
//
// When a silent rail has failed, against the whole history of looks.
#include "railpass/transport/silence.hpp"

#include "support/catch.hpp"
#include "support/seed.hpp"

#include <random>
#include <vector>

using namespace railpass::transport;

TEST_CASE("a rail is lost when nothing was answered in an unbroken row of looks, and not before") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> part(0, 1);
  int lost = 0, broken = 0;
  for (int round = 0; round < 300; ++round) {
    const double silence_s = round % 2 == 0 ? 5 : 0.8, every_s = std::min(0.5, silence_s / 8);
    silence_watch watch(silence_s, 2);
    struct look {
      double at_s;
      bool excused;
      double answered_s;  // until when
    };
    std::vector<look> looks;
    double now_s = 100 * part(random), answered_s = now_s;
    for (int k = 0; k < 60; ++k) {
      now_s += every_s * (random() % 25 == 0 ? 5 * part(random) : 1 + part(random));
      if (random() % 15 == 0) answered_s = now_s;
      const bool again = watch.look(now_s);
      REQUIRE(again == (!looks.empty() && now_s <= looks.back().at_s + 2 * every_s));
      if (!again) ++broken;
      looks.push_back({now_s, random() % 25 == 0, answered_s});
      watch.excuse(0);  // another rail
      if (looks.back().excused) {
        watch.excuse(1);
        continue;
      }
      // Backwards to the last moment that cannot be held against the rail.
      double since_s = now_s;
      for (std::size_t i = looks.size(); i-- > 0;) {
        const look& l = looks[i];
        const bool first = i == 0 || l.at_s > looks[i - 1].at_s + 2 * every_s;
        if (l.excused || first || l.answered_s == l.at_s) {
          since_s = l.at_s;
          break;
        }
      }
      since_s = std::max(since_s, answered_s);
      const bool expected = now_s - since_s > silence_s - 2.5 * every_s;
      REQUIRE(watch.is_lost(1, now_s - answered_s) == expected);
      lost += expected;
    }
  }
  CHECK(lost > 300);
  CHECK(broken > 300);
}

TEST_CASE("looks are taken at intervals, or never") {
  silence_watch watch(5, 1);
  CHECK(watch.is_time(0));
  CHECK(!watch.look(0));
  CHECK(!watch.is_time(0.49));
  CHECK(watch.is_time(0.5));
  CHECK(watch.look(1));
  CHECK(!watch.look(2.1));
  CHECK(!silence_watch(0, 1).is_time(1e9));
}

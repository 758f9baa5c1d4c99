// SPDX-License-Identifier: BSL-1.0
//
// The default policy in generated worlds; thousands of them by hand: bench/worlds.
#include "railpass/base/settings.hpp"
#include "railpass/select/policies.hpp"
#include "support/belief_player.hpp"
#include "support/catch.hpp"
#include "support/sanitized.hpp"

using namespace railpass;
using namespace railpass::test;

namespace {

policy_maker named(const std::string& name) {
  return [name](select::policy_input input) { return select::make_policy(name, std::move(input)); };
}

}  // namespace

TEST_CASE("in any world the default policy costs a bounded number of native calls") {
  constexpr int worlds = sanitized ? 16 : 128;
  int loss = 0, settled = 0;
  double saved = 0;
  for (std::uint64_t seed = 1; seed <= worlds; ++seed) {
    const auto w = make_world(seed);
    const verdict v = play(w, named(settings{}.policy), 6);
    INFO("world " << seed << ", " << w.family << ": excess " << v.excess << " of " << v.allowed
                  << ", settled within " << v.settled_within);
    CHECK(v.believed_ok);
    CHECK(v.attentive);
    loss += v.excess > v.allowed;
    settled += v.settled_within > v.settled_allowed;
    saved += (1 - 1 / v.gain) / worlds;
  }
  // Of 1000 worlds 16 and 8 were (docs/experiments).
  CHECK(loss <= 3);
  CHECK(settled <= 2);
  // A guard that never leaves native would keep every bound.
  CHECK(saved > 0.18);
}

TEST_CASE("worlds are the same for the same seed, and their draws have their means") {
  for (std::uint64_t seed = 1; seed <= 32; ++seed) {
    const auto w = make_world(seed), again = make_world(seed);
    REQUIRE(w.priors == again.priors);
    REQUIRE(w.priors.size() >= 2);
    REQUIRE(w.calls >= 30);
    const int arm = int(w.priors.size()) - 1;
    CHECK(w.draw_s(arm, 7, 0, 3) == again.draw_s(arm, 7, 0, 3));
    if (w.family == "late ranks" || w.family == "heavy tails") continue;
    double sum = 0;
    constexpr int draws = 20000;
    for (int n = 0; n < draws; ++n) sum += w.draw_s(0, 0, 0, std::uint64_t(n)) / draws;
    INFO("world " << seed << ", " << w.family);
    CHECK(sum >= 0.97 * w.mean_s(0, 0));
  }
}

TEST_CASE("native alone is judged to lose nothing but its merges") {
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    const verdict v = play(make_world(seed), named("native"), 2);
    CHECK(v.excess < 12 * v.allowed / 60);
    CHECK(v.settled_within <= 1);
    CHECK(v.attentive);
  }
}

TEST_CASE(
    "worlds of wrong beliefs are the same for the same seed, and native alone loses nothing") {
  for (std::size_t family = 0; family < belief_families.size(); ++family) {
    const belief_world w(family, 3), again(family, 3);
    INFO(w.family);
    REQUIRE(std::ranges::equal(w.priors_of(0), again.priors_of(0)));
    CHECK(w.draw_s(1, 7, 0, 3) == again.draw_s(1, 7, 0, 3));
    const belief_verdict v = play_beliefs(w, named("native"), 3);
    CHECK(v.ratios.back() >= 1);
    CHECK(v.ratios.back() < 1.02);
  }
}

namespace {

std::size_t number_of(std::string_view family) {
  return std::size_t(std::ranges::find(belief_families, family) - belief_families.begin());
}

/// How many of the worlds of these seeds the default policy is stuck in.
int stuck_worlds(std::string_view family, std::uint64_t seeds) {
  const std::size_t number = number_of(family);
  int stuck = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    stuck += play_beliefs(belief_world(number, seed), named(settings{}.policy), seed).stuck();
  return stuck;
}

}  // namespace

TEST_CASE("the default policy finds a good arm that is predicted to be slow") {
  CHECK(stuck_worlds("a good arm hidden", sanitized ? 6 : 24) <= 1);
}

TEST_CASE("the default policy leaves native where bursts of slow calls are native's alone") {
  CHECK(stuck_worlds("bursts of native", sanitized ? 6 : 24) <= (sanitized ? 4 : 12));
}

TEST_CASE("a profile that is wrong by one factor costs the default policy little") {
  constexpr std::size_t calls_1000 = 2;
  constexpr std::uint64_t seeds = sanitized ? 6 : 24;
  for (const char* const family :
       {"all predicted 20 times too slow", "all predicted 20 times too fast"}) {
    double cost = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      const auto time = [&](std::string_view of) {
        const belief_world w(number_of(of), seed);
        return play_beliefs(w, named(settings{}.policy), seed).ratios[calls_1000];
      };
      cost += std::log(time(family) / time("predictions right")) / double(seeds);
    }
    INFO(family);
    CHECK(cost < 0.05);
  }
}

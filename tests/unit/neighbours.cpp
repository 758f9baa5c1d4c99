// SPDX-License-Identifier: BSL-1.0
#include "railpass/select/belief/neighbours.hpp"

#include "railpass/select/policies.hpp"
#include "support/catch.hpp"
#include "support/simulated_arms.hpp"

#include <cmath>
#include <map>

using namespace railpass::select;
using namespace railpass::test;

namespace {

/// A policy and what it has learnt from.
struct taught_policy {
  std::unique_ptr<arm_book> book = std::make_unique<arm_book>();
  std::unique_ptr<policy> its{};
};

/// A policy's estimates after `samples` calls of each of `arms`.
taught_policy taught(const std::vector<arm_prior>& priors, const std::map<int, double>& seconds,
                     int samples) {
  taught_policy p{.its = make_policy("knowledge_gradient", {.priors = priors})};
  for (int i = 0; i < samples; ++i) {
    (void)p.its->plan({.calls = 10 * i, .merge_cost_s = 1e-6});
    std::vector<observation> merged;
    for (const auto& [arm, s] : seconds) merged.push_back({arm, s});
    p.book->add(merged, 10 * (i + 1));
    p.its->learn(*p.book);
  }
  return p;
}

auto of(const policy& p) {
  return [&p](int arm) { return p.posterior(arm); };
}

std::vector<arm_prior> some_priors(double log_seconds) {
  std::vector<arm_prior> priors{{.arm = 0, .native = true, .measured_only = true}};
  for (int a = 1; a <= 4; ++a)
    priors.push_back({.arm = a, .log_seconds = log_seconds + 0.1 * a, .family = a});
  return priors;
}

}  // namespace

TEST_CASE("errors of the model at one size are expected at the next one") {
  // At the other size arm 3 takes half of its prediction, all other arms match theirs.
  const auto there = some_priors(-8);
  std::map<int, double> seconds{{0, std::exp(-8)}};
  for (int a = 1; a <= 4; ++a)
    seconds[a] = std::exp(there[std::size_t(a)].log_seconds) * (a == 3 ? 0.5 : 1);
  const auto learnt = taught(there, seconds, 12);
  auto here = some_priors(-7);
  const auto before = here;
  correct_by_neighbour(here, of(*learnt.its), there, 1);
  CHECK(here[3].log_seconds - before[3].log_seconds == Approx(0.7 * std::log(0.5)).margin(0.1));
  for (const std::size_t a : {1U, 2U, 4U})
    CHECK(here[a].log_seconds == Approx(before[a].log_seconds).margin(0.1));
  for (std::size_t a = 1; a <= 4; ++a) CHECK(here[a].spread < before[a].spread);
  CHECK(here[0].measured_only);

  auto far = before;
  correct_by_neighbour(far, of(*learnt.its), there, most_octaves);
  for (std::size_t a = 1; a <= 4; ++a) {
    CHECK(far[a].spread >= here[a].spread);
    CHECK(far[a].spread <= before[a].spread);
  }
}

TEST_CASE("a machine that is slower altogether changes no order, of untried arms neither") {
  const auto there = some_priors(-8);
  // Arms 1 and 2 take three times as long as predicted; 5 and 6 are known at the new size only.
  const auto learnt = taught(
      there, {{1, 3 * std::exp(there[1].log_seconds)}, {2, 3 * std::exp(there[2].log_seconds)}},
      12);
  auto here = some_priors(-7);
  here.push_back({.arm = 5, .log_seconds = -6.8, .family = 5});
  const auto before = here;
  correct_by_neighbour(here, of(*learnt.its), there, 1);
  for (std::size_t a = 1; a < here.size(); ++a) {
    CAPTURE(a);
    CHECK(here[a].log_seconds - before[a].log_seconds == Approx(std::log(3)).margin(0.25));
  }
  CHECK(here[5].spread == before[5].spread);
}

TEST_CASE("native's table and the model do not correct each other") {
  auto there = some_priors(-8);
  there[0] = {.arm = 0, .log_seconds = -8, .spread = 0.2, .family = 0, .native = true};
  auto here = there;
  for (arm_prior& p : here) p.log_seconds += 1;
  const auto before = here;
  // The model's predictions are three times too short, and the table is right.
  std::map<int, double> seconds{{0, std::exp(there[0].log_seconds)}};
  for (const int arm : {1, 2, 3}) seconds[arm] = 3 * std::exp(there[std::size_t(arm)].log_seconds);
  const auto learnt = taught(there, seconds, 12);
  correct_by_neighbour(here, of(*learnt.its), there, 1);
  CHECK(here[0].log_seconds == Approx(before[0].log_seconds).margin(0.05));
  CHECK(here[4].log_seconds - before[4].log_seconds == Approx(std::log(3)).margin(0.25));
}

TEST_CASE("nothing learnt, nothing corrected") {
  const auto there = some_priors(-8);
  const auto ignorant = make_policy("pass", {.priors = there});
  auto here = some_priors(-7);
  correct_by_neighbour(here, of(*ignorant), there, 1);
  for (std::size_t a = 1; a < here.size(); ++a) {
    CHECK(here[a].log_seconds == some_priors(-7)[a].log_seconds);
    CHECK(here[a].spread == some_priors(-7)[a].spread);
  }
}

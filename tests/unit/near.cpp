// SPDX-License-Identifier: BSL-1.0
//
// Priors of function sets' versions from near problems, by their features. Times are simulated.
#include "railpass/knowledge/near.hpp"

#include "railpass/knowledge/recalling.hpp"
#include "railpass/select/lockstep/lockstep.hpp"
#include "railpass/select/policies.hpp"
#include "railpass/select/policy/policy.hpp"
#include "railpass/select/policy/random.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace railpass;
using namespace railpass::knowledge;

namespace {

problem halo_of(std::vector<std::int64_t> features) {
  return {.collective = "halo",
          .operation = set_kind{.shape = {1}, .features = std::move(features)}.text(),
          .num_ranks = 8};
}

std::string version(int arm) { return "v" + std::to_string(arm); }

experience known_of(const problem& of, const std::map<int, double>& seconds,
                    std::int64_t samples = 100) {
  experience e{.of = of};
  for (const auto& [arm, s] : seconds)
    e.arms.push_back(
        {.arm = version(arm),
         .calls = samples,
         .times = {.samples = samples,
                   .mean_s = s,
                   .spread = 0.05,
                   .quantiles = {.low_s = 0.9 * s, .median_s = s, .high_s = 1.1 * s}}});
  return e;
}

std::optional<double> distance_to(const problem& known, const problem& wanted,
                                  const feature_distance& by = {}) {
  const set_kind kind = *set_kind::of(wanted.operation);
  const auto away = near(known, {wanted, kind, by});
  return away ? std::optional(away->distance) : std::nullopt;
}

/// As a process recalls the knowledge.
std::vector<neighbour> recalled(const std::vector<experience>& all, const problem& of) {
  std::vector<neighbour> found;
  const set_kind kind = *set_kind::of(of.operation);
  for (const experience& e : all)
    if (const auto away = near(e.of, {of, kind, {}}))
      found.push_back({.distance = away->distance, .octaves = away->octaves, .known = e});
  std::ranges::stable_sort(found, {}, &neighbour::distance);
  found.resize(std::min(found.size(), most_near));
  return found;
}

std::vector<select::arm_prior> unknown_arms(int count) {
  std::vector<std::vector<double>> values;
  for (int a = 0; a < count; ++a) values.push_back({double(a)});
  return select::arms_of_versions(values);
}

std::vector<select::arm_prior> predicted(int count, const std::vector<experience>& all,
                                         const problem& of) {
  auto priors = unknown_arms(count);
  predict_from_near(priors, recalled(all, of), version);
  return priors;
}

}  // namespace

TEST_CASE("a kind of a set's contexts is the same after it was text") {
  for (const set_kind& kind :
       {set_kind{}, set_kind{.shape = {64, 32}}, set_kind{.features = {0, 1 << 20}},
        set_kind{.shape = {-1, 3}, .features = {5}, .region = "a+features=3"},
        set_kind{.region = "x"}}) {
    INFO(kind.text());
    CHECK(set_kind::of(kind.text()) == kind);
  }
  CHECK(set_kind{.shape = {1, 0}, .features = {8192, 64}, .region = "solve"}.text() ==
        "set+shape=1x0+features=8192x64+region=solve");
  for (const char* const none :
       {"", "none", "se", "set+", "setx", "set+shape=", "set+shape=1x", "set+shape=1+features=a",
        "set+features=1+shape=2", "set+features=99999999999999999999", "set+shape=1 "})
    CHECK_FALSE(set_kind::of(none));
}

TEST_CASE("problems are near by their features, all else must be equal") {
  const problem of = halo_of({1024, 4096});
  CHECK(*distance_to(of, of) == 0);
  CHECK(*distance_to(halo_of({4096, 4096}), of) == Approx(2));
  CHECK(*distance_to(halo_of({2048, 2048}), of) == Approx(std::sqrt(2)));
  CHECK_FALSE(distance_to(halo_of({1024 * 8, 4096 * 8}), of));
  CHECK_FALSE(distance_to(halo_of({1024}), of));
  CHECK_FALSE(distance_to(halo_of({}), halo_of({})));
  CHECK(*distance_to(halo_of({0, 4096}), halo_of({1, 4096})) == 0);
  problem other = of;
  SECTION("ranks") { other.num_ranks = 16; }
  SECTION("ranks per node") { other.ranks_per_node = 2; }
  SECTION("rails") { other.rails = "eth1"; }
  SECTION("set") { other.collective = "step"; }
  SECTION("shape") { other.operation = "set+shape=2+features=1024x4096"; }
  SECTION("region") { other.operation += "+region=solve"; }
  SECTION("no set") { other.operation = "none"; }
  CHECK_FALSE(distance_to(other, of));
}

TEST_CASE("a distance of the user's counts, unless it is none") {
  const problem a = halo_of({10}), b = halo_of({12});
  using sizes = std::span<const std::int64_t>;
  CHECK(*distance_to(a, b, [](sizes known, sizes wanted) {
    return double(wanted[0] - known[0]) / 4;
  }) == 0.5);
  CHECK_FALSE(distance_to(a, b, [](sizes, sizes) { return -1.0; }));
  CHECK_FALSE(distance_to(a, b, [](sizes, sizes) { return std::nan(""); }));
  CHECK_FALSE(distance_to(a, b, [](sizes, sizes) { return 3.01; }));
  CHECK_FALSE(distance_to(a, b, [](sizes, sizes) -> double { throw std::runtime_error("mine"); }));
}

TEST_CASE("what is known of a near problem is the prior, with a doubt that grows with distance") {
  const experience known = known_of(halo_of({1024}), {{0, 2e-3}, {2, 1e-3}});
  double spread = 0;
  for (const std::int64_t bytes : {1024, 1100, 2048, 8192}) {
    const auto priors = predicted(3, {known}, halo_of({bytes}));
    CHECK(priors[1] == unknown_arms(3)[1]);
    CHECK_FALSE(priors[2].measured_only);
    CHECK(priors[2].remembered);
    CHECK(priors[0].log_seconds - priors[2].log_seconds == Approx(std::log(2)));
    CHECK(priors[2].spread > spread);
    spread = priors[2].spread;
  }
  CHECK(spread < 0.5);
  CHECK(predicted(3, {known}, halo_of({8193 * 2})) == unknown_arms(3));
  CHECK(predicted(3, {}, halo_of({1024})) == unknown_arms(3));
}

TEST_CASE("how far times grow is seen where several problems are known") {
  const auto time_at = [](std::int64_t bytes, const std::vector<experience>& all) {
    return std::exp(predicted(1, all, halo_of({bytes}))[0].log_seconds);
  };
  const auto known = [](std::int64_t bytes, double s) {
    return known_of(halo_of({bytes}), {{0, s}});
  };
  CHECK(time_at(4096, {known(1024, 1e-3)}) == Approx(2e-3).epsilon(0.05));  // anything between
  const std::vector<experience> flat{known(1024, 1e-3), known(512, 1e-3), known(256, 1e-3)};
  const std::vector<experience> steep{known(1024, 4e-3), known(512, 2e-3), known(256, 1e-3)};
  CHECK(time_at(4096, flat) < 1.4e-3);
  CHECK(time_at(4096, steep) > 12e-3);
  CHECK(time_at(4096, steep) < 18e-3);
}

TEST_CASE("versions that different problems know stand on one level") {
  // Twice the size, and another machine's speed: times are five times as long.
  const std::vector<experience> all{known_of(halo_of({1024}), {{0, 2e-3}, {1, 1e-3}}),
                                    known_of(halo_of({2048}), {{0, 10e-3}, {2, 6e-3}})};
  const auto priors = predicted(4, all, halo_of({1100}));
  const auto over_first = [&](int arm) {
    return std::exp(priors[std::size_t(arm)].log_seconds - priors[0].log_seconds);
  };
  CHECK(over_first(1) == Approx(0.5).epsilon(0.01));
  CHECK(over_first(2) == Approx(0.6).epsilon(0.01));
  CHECK(priors[2].spread > priors[1].spread);
  CHECK(priors[3].measured_only);
}

TEST_CASE("what is known of the very problem stays, and the others are told beside it") {
  auto priors = unknown_arms(3);
  const problem of = halo_of({1024});
  remember_times(priors, known_of(of, {{0, 3e-3}, {1, 2e-3}}), version);
  const auto remembered = priors;
  predict_from_near(priors,
                    recalled({known_of(halo_of({1200}), {{0, 6e-3}, {1, 9e-3}, {2, 1e-3}})}, of),
                    version);
  CHECK(priors[0] == remembered[0]);
  CHECK(priors[1] == remembered[1]);
  CHECK(priors[2].log_seconds < priors[1].log_seconds);
}

namespace {

/// A mesh whose size changes: the ratios of versions drift with the size, and each size is a
/// context of its own. All calls use the lockstep, as in sessions.
class changing_mesh {
 public:
  changing_mesh(bool tells, int versions, std::uint64_t seed)
      : tells_(tells), versions_(versions), random_(seed) {
    for (int v = 0; v < versions_; ++v) {
      good_at_small_.push_back(0.3 * random_.normal());
      good_at_large_.push_back(0.3 * random_.normal());
    }
  }

  /// Time of `calls` calls beyond the best version's, in calls of the best version.
  double lost_in(std::int64_t bytes, int calls) {
    const problem of = halo_of({bytes});
    select::lockstep steps({});
    steps.expect({.spread_s = 0, .at_once_s = 0});
    const select::context_id id{1, select::waiting::for_all};
    REQUIRE(steps.next_call(id).needs_first_plan);
    const auto policy = [](std::vector<select::arm_prior> priors) {
      return select::make_policy("knowledge_gradient",
                                 {.priors = std::move(priors), .all_wait = true});
    };
    auto priors = unknown_arms(versions_);
    if (tells_) predict_from_near(priors, recalled(known_, of), version);
    steps.adopt(0, steps.lead(0, std::make_unique<recalling_policy>(policy(priors), [=, this] {
                                return policy(unknown_arms(versions_));
                              })));
    double best_s = INFINITY, lost = 0;
    for (int v = 0; v < versions_; ++v) best_s = std::min(best_s, seconds(v, bytes));
    for (int call = 0; call < calls; ++call) {
      if (steps.begin_call())
        while (steps.due() != select::merge_step::none) (void)steps.step_alone();
      const select::timed_call c = steps.next_call(id);
      const double s = seconds(c.arm, bytes);
      lost += s / best_s - 1;
      if (c.timed) steps.record(c, s * std::exp(0.03 * random_.normal()));
    }
    experience learnt{.of = of};
    for (const select::arm_record& r : steps.records(0)) {
      if (r.sums.samples == 0) continue;
      const double s = std::exp(r.sums.mean_log());
      learnt.arms.push_back({.arm = version(r.arm),
                             .times = {.samples = r.sums.samples,
                                       .mean_s = s,
                                       .spread = 0.03,
                                       .quantiles = {.median_s = s}}});
    }
    known_.push_back(std::move(learnt));
    return lost;
  }

 private:
  double seconds(int v, std::int64_t bytes) const {
    const double octave = std::log2(double(bytes) / 1024) / 6, i = double(bytes) / 65536;
    return 1e-3 * (0.2 + i) *
           std::exp((1 - octave) * good_at_small_[std::size_t(v)] +
                    octave * good_at_large_[std::size_t(v)]);
  }

  bool tells_;
  int versions_;
  select::random_stream random_;
  std::vector<double> good_at_small_, good_at_large_;
  std::vector<experience> known_;
};

}  // namespace

TEST_CASE("on a mesh that changes its size the best version is found sooner") {
  const int versions = GENERATE(12, 50), seed = GENERATE(range(1, 4));
  CAPTURE(versions, seed);
  changing_mesh told(true, versions, std::uint64_t(seed)),
      afresh(false, versions, std::uint64_t(seed));
  select::random_stream sizes(100 + std::uint64_t(seed));
  double lost_told = 0, lost_afresh = 0;
  for (int phase = 0; phase < 40; ++phase) {
    const auto bytes = std::int64_t(1024 * std::exp2(6 * sizes.uniform()));
    lost_told += told.lost_in(bytes, 50);
    lost_afresh += afresh.lost_in(bytes, 50);
  }
  CHECK(lost_told < 0.6 * lost_afresh);
}

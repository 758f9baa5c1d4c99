// SPDX-License-Identifier: BSL-1.0
//
// Function sets as policies see them: arms of which nothing is predicted, with any number of
// attributes. Times are planted.
#include "railpass/select/lockstep/lockstep.hpp"
#include "railpass/select/policies.hpp"
#include "railpass/select/policies/peers/attribute_grid.hpp"
#include "railpass/select/policy/random.hpp"
#include "support/catch.hpp"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

using namespace railpass;
using namespace railpass::select;

namespace {

using point = std::vector<double>;
using times = std::function<double(const point&)>;

/// All combinations of 0 to levels - 1 of each attribute, the last one changing the fastest.
std::vector<point> product(const std::vector<int>& levels) {
  std::vector<point> all{{}};
  for (const int n : levels) {
    std::vector<point> longer;
    for (const point& p : all)
      for (int value = 0; value < n; ++value) {
        longer.push_back(p);
        longer.back().push_back(value);
      }
    all = std::move(longer);
  }
  return all;
}

/// A set called on one rank, by the lockstep that sessions use.
class played_set {
 public:
  played_set(const std::string& policy, std::vector<point> versions, times seconds,
             double noise = 0.02, std::uint64_t seed = 1)
      : versions_(std::move(versions)), seconds_(std::move(seconds)), noise_(noise), random_(seed) {
    steps_.expect({.spread_s = 0, .at_once_s = 0});
    REQUIRE(steps_.next_call(id).needs_first_plan);
    steps_.adopt(0, steps_.lead(0, make_policy(policy, {.priors = arms_of_versions(versions_),
                                                        .seed = seed,
                                                        .all_wait = true})));
  }

  void calls(int count) {
    for (int i = 0; i < count; ++i) {
      if (steps_.begin_call())
        while (steps_.due() != merge_step::none) (void)steps_.step_alone();
      const timed_call c = steps_.next_call(id);
      const double took_s =
          seconds_(versions_[std::size_t(c.arm)]) * std::exp(noise_ * random_.normal());
      taken_s_ += took_s;
      ++counts_[std::size_t(c.arm)];
      if (c.timed) steps_.record(c, took_s);
    }
  }
  bool is_settled() const { return steps_.is_settled(0); }
  const point& in_use() const { return versions_[std::size_t(steps_.incumbent(0))]; }
  double taken_s() const { return taken_s_; }
  int calls_of(std::size_t version) const { return counts_[version]; }

 private:
  static constexpr context_id id{1, waiting::for_all};
  std::vector<point> versions_;
  std::vector<int> counts_ = std::vector<int>(versions_.size());
  times seconds_;
  double noise_;
  random_stream random_;
  lockstep steps_{{}};
  double taken_s_ = 0;
};

// Neither attribute helps alone: the best version has both, and each of them costs without the
// other one.
double interaction(const point& p) {
  const bool both = p[0] == 2 && p[1] == 1;
  return 1e-3 * (both ? 0.6 : 1 + 0.1 * p[0] + 0.1 * p[1]);
}
double additive(const point& p) {
  return 1e-3 * (1 + 0.3 * std::abs(p[0] - 1) + 0.2 * (p.size() > 1 ? 1 - p[1] : 0));
}

}  // namespace

TEST_CASE("sets have any number of attributes; versions with the same values are told apart") {
  std::vector<point> versions = product({2, 3, 2, 2});
  versions.push_back(versions.back());
  const auto arms = arms_of_versions(versions);
  const attribute_grid grid(arms);
  REQUIRE(grid.num_attributes() == 5);
  CHECK(grid.levels(0) == 2);
  CHECK(grid.levels(1) == 3);
  CHECK(grid.levels(3) == 2);
  CHECK(grid.levels(4) == 2);
  CHECK(grid.at(0) == attribute_grid::point{0, 0, 0, 0, 0});
  CHECK(grid.at(24) == attribute_grid::point{1, 2, 1, 1, 1});
  CHECK(grid.nearest({1, 2, 1, 1, 1}, -1, [](std::size_t) { return true; }) == 24);
}

TEST_CASE("the default policy finds a version that wins by an interaction, at any scale of time") {
  const double scale = GENERATE(1e-3, 1.0, 1e4);
  const std::uint64_t seed = GENERATE(1u, 2u, 3u);
  CAPTURE(scale, seed);
  played_set set(
      "knowledge_gradient", product({3, 2}), [&](const point& p) { return scale * interaction(p); },
      0.05, seed);
  CHECK_FALSE(set.is_settled());
  set.calls(400);
  CHECK(set.in_use() == point{2, 1});
  CHECK(set.is_settled());
  CHECK(set.taken_s() < 400 * scale * 1e-3);  // what the first version would have taken
}

TEST_CASE("the default policy finds the best of more versions than it keeps beliefs of") {
  const std::uint64_t seed = GENERATE(1u, 2u, 3u);
  played_set set(
      "knowledge_gradient", product({6, 5, 4}),
      [](const point& p) {
        return p == point{5, 3, 2} ? 0.5e-3 : 1e-3 * (1 + 0.05 * (p[0] + p[1] + p[2]));
      },
      0.05, seed);
  set.calls(3000);
  CHECK(set.in_use() == point{5, 3, 2});
}

TEST_CASE("the default policy stays with the first version where no other one is faster") {
  played_set set("knowledge_gradient", product({3, 2}), [](const point& p) {
    return p == point{0, 0} ? 1e-3 : 1.5e-3;
  });
  set.calls(400);
  CHECK(set.in_use() == point{0, 0});
  CHECK(set.is_settled());
  CHECK(set.taken_s() < 1.15 * 400e-3);
}

TEST_CASE("brute force finds an interaction; the search by attributes finds sums") {
  const auto best_by = [](const char* policy, const times& seconds, std::vector<int> levels,
                          int calls) {
    played_set set(policy, product(levels), seconds);
    set.calls(calls);
    CHECK(set.is_settled());
    return set.in_use();
  };
  CHECK(best_by("adcl_brute_force", interaction, {3, 2}, 400) == point{2, 1});
  CHECK(best_by("adcl_attributes", additive, {3, 2}, 400) == point{1, 1});
  // By its rule: each attribute alone makes it worse.
  CHECK(best_by("adcl_attributes", interaction, {3, 2}, 400) == point{0, 0});
  // The corners show the interaction.
  CHECK(best_by("factorial", interaction, {3, 2}, 400) == point{2, 1});
}

TEST_CASE("2^k design keeps an attribute of little effect at its best corner") {
  played_set set(
      "factorial", product({3, 2, 2}),
      [](const point& p) { return 1e-3 * (2 - 0.4 * p[0] + 0.001 * p[1] + (p[2] == 1 ? 0.5 : 0)); },
      0);
  set.calls(12 * 30 + 100);
  CHECK(set.in_use() == point{2, 0, 0});
  std::vector<int> many(11, 2);
  CHECK_THROWS_AS(make_policy("factorial", {.priors = arms_of_versions(product(many))}), error);
}

TEST_CASE("nothing has settled while versions are tried") {
  played_set set("adcl_brute_force", product({3, 2}), interaction);
  for (int tried = 0; tried < 6 * 30; ++tried) {
    set.calls(1);
    CHECK_FALSE(set.is_settled());
  }
  set.calls(100);
  CHECK(set.is_settled());
}

TEST_CASE("one of several that are equally fast settles") {
  const double noise = GENERATE(0.0, 0.02);
  CAPTURE(noise);
  played_set set(
      "knowledge_gradient", product({3}), [](const point& p) { return p[0] == 0 ? 2e-3 : 1e-3; },
      noise);
  set.calls(200);
  CHECK(set.is_settled());
  CHECK(set.in_use()[0] > 0);
}

TEST_CASE("the default policy drops what is ten times slower after two calls at the latest") {
  const std::vector<point> versions = product({3, 6, 2});  // a third of them is slow
  const times seconds = [](const point& p) {
    return 1e-4 * (p[1] >= 4 ? 12 : 1 + 0.05 * p[0] + 0.1 * p[1] + 0.1 * p[2]);
  };
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    played_set played("knowledge_gradient", versions, seconds, 0.1, seed);
    played.calls(1000);
    for (std::size_t i = 0; i < versions.size(); ++i) {
      CAPTURE(seed, i);
      if (versions[i][1] >= 4) CHECK(played.calls_of(i) <= 2);
    }
  }
}

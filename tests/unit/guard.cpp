// SPDX-License-Identifier: BSL-1.0
//
// The guard alone, over a policy that proposes what the test says; then with the default policy
// where that alone lost itself.
#include "railpass/select/policy/guard.hpp"

#include "railpass/select/policies.hpp"
#include "railpass/select/policies/knowledge_gradient.hpp"
#include "railpass/select/policy/random.hpp"
#include "support/catch.hpp"

#include <functional>

using namespace railpass;
using namespace railpass::select;

namespace {

/// Proposes one arm for use and others to be tried, once each.
class stubborn final : public policy {
 public:
  explicit stubborn(int num_arms, int proposed, std::vector<exploration> tries = {})
      : proposed_(proposed), tries_(std::move(tries)) {
    for (int a = 0; a < num_arms; ++a)
      priors_.push_back({.arm = a, .log_seconds = std::log(1e-5), .spread = 0.6, .native = a == 0});
    priors_[0].measured_only = true;
  }
  /// With native and the proposed arm known from earlier runs.
  stubborn(int num_arms, int proposed, double native_s, std::int64_t samples_of_native,
           std::vector<exploration> tries = {})
      : stubborn(num_arms, proposed, std::move(tries)) {
    priors_[0].measured_only = false;
    priors_[0].log_seconds = std::log(native_s);
    priors_[0].earlier_samples = samples_of_native;
    for (const int a : {0, proposed}) {
      priors_[std::size_t(a)].remembered = true;
      priors_[std::size_t(a)].spread = 0.2;
    }
  }
  void learn(const arm_book&) override {}
  epoch_plan plan(const planning_input&) override {
    return {.incumbent = proposed_, .explore = std::exchange(tries_, {}), .length = 16};
  }
  std::span<const arm_prior> arms() const override { return priors_; }
  std::vector<double> probabilities() const override { return {}; }
  std::optional<time_estimate> posterior(int) const override { return std::nullopt; }
  std::string reason() const override { return "proposed"; }

 private:
  int proposed_;
  std::vector<exploration> tries_;
  std::vector<arm_prior> priors_;
};

/// Seconds of a call of an arm.
using world_function = std::function<double(int arm, std::int64_t call)>;

/// Makes calls as a policy's plans say, all of them timed; returns which arms they took.
std::vector<int> make_calls(policy& p, arm_book& book, std::int64_t count,
                            const world_function& takes_s, bool shares_cores = false,
                            int* compared = nullptr) {
  std::vector<int> arms;
  epoch_plan now = p.plan({.calls = 0, .merge_cost_s = 1e-6, .shares_cores = shares_cores});
  while (std::ssize(arms) < count) {
    std::vector<observation> seen;
    std::size_t next = 0;
    for (int i = 0; i < now.length && std::ssize(arms) < count; ++i) {
      int arm = now.incumbent;
      if (next < now.explore.size() && now.explore[next].position <= i)
        arm = now.explore[next++].arm;
      if (seen.size() < 64)
        seen.push_back({arm, takes_s(arm, std::ssize(arms)), !arms.empty() && arms.back() == arm});
      arms.push_back(arm);
    }
    const auto ran = [&](int arm) { return std::ranges::count(seen, arm, &observation::arm) > 0; };
    if (compared && now.incumbent != 0 && ran(now.incumbent) && ran(0)) ++*compared;
    book.add(seen, std::ssize(arms));
    p.learn(book);
    now = p.plan({.calls = std::ssize(arms), .merge_cost_s = 1e-6, .shares_cores = shares_cores});
  }
  return arms;
}

/// The same for a policy that is not asked any more.
std::vector<int> make_calls(policy& p, std::int64_t count, const world_function& takes_s,
                            bool shares_cores = false, int* compared = nullptr) {
  arm_book book;
  return make_calls(p, book, count, takes_s, shares_cores, compared);
}

std::int64_t calls_of(const std::vector<int>& arms, int arm, std::size_t from = 0) {
  return std::count(arms.begin() + std::ptrdiff_t(from), arms.end(), arm);
}

}  // namespace

TEST_CASE("nothing is in use that has not run") {
  guarded_policy p(std::make_unique<stubborn>(3, 2));
  const epoch_plan first = p.plan({});
  CHECK(first.incumbent == 0);
  // One pair: the second call counts, as the first may hold the rest of another arm's.
  CHECK(first.explore ==
        std::vector<exploration>{{.position = 1, .arm = 2}, {.position = 2, .arm = 2}});
  CHECK(p.reason() != "proposed");  // which speaks for an arm that is not in use
}

TEST_CASE("an arm is in use as long as it is quicker than native") {
  const auto arms = [](double seconds) {
    guarded_policy p(std::make_unique<stubborn>(2, 1));
    return make_calls(p, 1000, [&](int arm, std::int64_t) { return arm == 0 ? 1e-5 : seconds; });
  };
  CHECK(calls_of(arms(0.9e-5), 1) > 950);
  // It is tried again and again, as it is proposed, within the budget.
  CHECK(calls_of(arms(1.1e-5), 1, 900) < 60);
  CHECK(double(calls_of(arms(3e-5), 1)) * 2 < 40 + 0.03 * 1000 + 16 * 2);
}

TEST_CASE("where ranks share cores an arm must be clearly quicker, and trials cost more") {
  const auto calls_of_arm = [](double seconds, bool shares_cores, std::size_t from = 100) {
    guarded_policy p(std::make_unique<stubborn>(2, 1));
    return calls_of(make_calls(
                        p, 1000, [&](int arm, std::int64_t) { return arm == 0 ? 1e-5 : seconds; },
                        shares_cores),
                    1, from);
  };
  CHECK(calls_of_arm(0.85e-5, false) > 850);
  CHECK(calls_of_arm(0.5e-5, true) > 850);
  // Not in use, and tried within the budget: a call costs a tenth of native's, not nothing.
  CHECK(0.1 * double(calls_of_arm(0.85e-5, true, 0)) < 40 + 0.03 * 1000 + 0.1 * 16);
  CHECK(calls_of_arm(0.85e-5, true) < 500);
  CHECK(0.3 * double(calls_of_arm(1.05e-5, true, 0)) < 40 + 0.03 * 1000 + 0.3 * 16);
}

TEST_CASE("an arm in use meets native before its calls have doubled") {
  guarded_policy p(std::make_unique<stubborn>(2, 1));
  const auto arms =
      make_calls(p, 20000, [](int arm, std::int64_t) { return arm == 0 ? 1e-5 : 0.5e-5; });
  std::int64_t met = 64;
  for (std::int64_t call = 0; call < std::ssize(arms); ++call) {
    if (arms[std::size_t(call)] == 0) met = std::max(met, call);
    REQUIRE(call <= 2 * met);
  }
  CHECK(calls_of(arms, 0) < 40);
}

TEST_CASE("an arm meets native soon if earlier runs have hardly measured native") {
  const auto first_native = [](double earlier_s, std::int64_t samples, bool all_wait = false) {
    guarded_policy p(std::make_unique<stubborn>(2, 1, earlier_s, samples), false, all_wait);
    const auto arms =
        make_calls(p, 100, [](int arm, std::int64_t) { return arm == 0 ? 0.5e-5 : 1e-5; });
    if (samples == 1 && !all_wait) CHECK((calls_of(arms, 0) > 40) == (earlier_s < 2e-5));
    return std::ranges::find(arms, 0) - arms.begin();
  };
  CHECK(first_native(1.5e-5, 1) < 8);
  CHECK(first_native(1.5e-5, 7) < 8);
  CHECK(first_native(1.5e-5, 1, true) < 8);
  CHECK(first_native(1.5e-5, 8) > 60);
  CHECK(first_native(3e-5, 1) > 60);  // clearly slower
}

TEST_CASE("the plan of an early comparison with native ends behind it, whatever else is tried") {
  std::vector<exploration> tries;
  for (int position = 1; position <= 7; ++position) tries.push_back({position, 2});
  guarded_policy p(std::make_unique<stubborn>(3, 1, 1.5e-5, 1, tries));
  const epoch_plan first = p.plan({});
  REQUIRE(first.incumbent == 1);
  CHECK(std::ranges::count(first.explore, 2, &exploration::arm) == 7);
  CHECK(std::ranges::count_if(first.explore, [&](const exploration& e) {
          return e.arm == 0 && e.position < first.length;
        }) == 2);
}

TEST_CASE("who wants to know what an arm is worth has it meet native often, for little") {
  const auto met = [](double native_s) {
    guarded_policy p(std::make_unique<stubborn>(2, 1), true);
    return calls_of(
        make_calls(p, 20000, [&](int arm, std::int64_t) { return arm == 0 ? native_s : 1e-5; }), 0,
        1000);
  };
  CHECK(met(1.05e-5) > 1500);  // two in twenty calls, and some after merges
  CHECK(met(1.05e-5) < 2500);
  CHECK(met(1.2e-5) > 700);  // two in forty: 1 %
  CHECK(met(1.2e-5) < 1250);
  // Ten times slower: twice nine calls lost in 1800, 1 %.
  CHECK(met(10e-5) > 15);
  CHECK(met(10e-5) < 30);
}

TEST_CASE(
    "who wants to know what an arm is worth has some comparisons soon, however slow native is") {
  guarded_policy p(std::make_unique<stubborn>(2, 1), true);
  int compared = 0;
  const auto arms = make_calls(
      p, 800, [](int arm, std::int64_t) { return arm == 0 ? 5e-5 : 1e-5; }, false, &compared);
  CHECK(compared >= 5);
  CHECK(calls_of(arms, 0, 64) < 20);
}

TEST_CASE("native is in use at once when the arm in use becomes slower than it") {
  guarded_policy p(std::make_unique<stubborn>(2, 1));
  const auto arms = make_calls(p, 2000, [](int arm, std::int64_t call) {
    return arm == 0 ? 1e-5 : call < 1000 ? 0.5e-5 : 100e-5;
  });
  // An epoch, and the trials for which the budget is there.
  CHECK(calls_of(arms, 1, 1000) < 30);
}

TEST_CASE("an arm that leaves its work to the next call is not in use") {
  guarded_policy p(std::make_unique<stubborn>(2, 1));
  int before = 0;
  // Quick itself, and native takes the rest of it; by itself it takes twice native's time.
  const auto arms = make_calls(p, 2000, [&](int arm, std::int64_t) {
    const double s = arm == 0 ? (before == 0 ? 1e-5 : 3e-5) : (before == 0 ? 0.5e-5 : 2e-5);
    before = arm;
    return s;
  });
  CHECK(calls_of(arms, 1, 200) < 150);
}

TEST_CASE("what is slow for a while together with native comes back") {
  guarded_policy p(std::make_unique<stubborn>(2, 1));
  const auto arms = make_calls(p, 4000, [](int arm, std::int64_t call) {
    return (arm == 0 ? 1e-5 : 0.5e-5) * (call >= 1000 && call < 1100 ? 1000 : 1);
  });
  CHECK(calls_of(arms, 1, 1200) > 2750);
}

TEST_CASE("an arm is in use where native's slow calls make native the slower one in the mean") {
  guarded_policy p(std::make_unique<stubborn>(2, 1));
  const auto arms = make_calls(p, 6000, [](int arm, std::int64_t call) {
    return arm == 1 ? 1.25e-5 : call % 100 < 10 ? 10e-5 : 1e-5;
  });
  CHECK(calls_of(arms, 1, 2000) > 3500);
}

TEST_CASE("slow calls of all arms alike do not speak for an arm") {
  guarded_policy p(std::make_unique<stubborn>(2, 1));
  const auto arms = make_calls(p, 6000, [](int arm, std::int64_t call) {
    return (arm == 1 ? 1.25e-5 : 1e-5) * (call % 100 < 10 ? 10 : 1);
  });
  CHECK(calls_of(arms, 1, 2000) < 500);
}

TEST_CASE("untried arms are tried as long as first calls have cost little") {
  std::vector<exploration> tries;
  for (int i = 0; i < 30; ++i) tries.push_back({.position = i, .arm = i + 1});
  const auto tried = [&](double seconds) {
    guarded_policy p(std::make_unique<stubborn>(31, 0, tries));
    arm_book book;
    make_calls(p, book, 2, [&](int arm, std::int64_t) { return arm == 0 ? 1e-5 : seconds; });
    return p.plan({.calls = 2}).explore.size();
  };
  CHECK(tried(1e-5) == 0);  // all were tried in the first epoch, or left out
  guarded_policy careful(std::make_unique<stubborn>(31, 0, tries));
  arm_book of_careful;
  of_careful.add(std::vector<observation>{{0, 1e-5}}, 1);
  careful.learn(of_careful);
  CHECK(careful.plan({.calls = 1}).explore.size() == 8);
  guarded_policy burnt(std::make_unique<stubborn>(31, 0, tries));
  arm_book of_burnt;
  of_burnt.add(std::vector<observation>{{0, 1e-5}, {1, 100e-5}}, 2);
  burnt.learn(of_burnt);
  CHECK(burnt.plan({.calls = 2}).explore.empty());
  guarded_policy lucky(std::make_unique<stubborn>(31, 0, tries));
  arm_book of_lucky;
  of_lucky.add(std::vector<observation>{{0, 1e-5}, {1, 1e-5}, {2, 1e-5}}, 3);
  lucky.learn(of_lucky);
  CHECK(lucky.plan({.calls = 3}).explore.size() == 26);
  // A policy that begins in the midst of a context has not earned by the calls before.
  guarded_policy late(std::make_unique<stubborn>(31, 0, tries));
  arm_book of_late;
  of_late.add(std::vector<observation>{{0, 1e-5}}, 100000);
  of_late.add(std::vector<observation>{{0, 1e-5}}, 100001);
  late.learn(of_late);
  CHECK(late.plan({.calls = 100001}).explore.size() == 8);
}

namespace {

/// 24 arms of eight algorithms, predicted to take three times as long as they do.
policy_input cold(std::uint64_t seed) {
  std::vector<arm_prior> priors{{.arm = 0, .native = true, .measured_only = true}};
  for (int a = 1; a <= 24; ++a)
    priors.push_back({.arm = a,
                      .log_seconds = std::log(2e-4 * (1 + 0.01 * a)),
                      .spread = 0.6,
                      .family = 1 + (a - 1) / 3});
  return {.priors = priors, .seed = seed};
}

/// Nothing is believed that lies far beyond what was ever seen.
void check_beliefs(const policy& p, double most_s) {
  for (int a = 0; a <= 24; ++a) {
    INFO("arm " << a);
    REQUIRE(p.posterior(a));
    CHECK(p.posterior(a)->mean_s < 3 * most_s);
  }
}

}  // namespace

TEST_CASE("when all arms but native become a hundred times slower native is in use again") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    knowledge_gradient_policy p(cold(seed));
    arm_book book;
    random_stream r(77 * seed);
    double most_s = 0;
    const auto arms = make_calls(p, book, 1400, [&](int arm, std::int64_t call) {
      double s = 65e-6 * std::exp(0.05 * r.normal());
      if (call >= 400 && arm != 0) s *= 100 * std::exp(0.3 * r.normal());
      most_s = std::max(most_s, s);
      return s;
    });
    INFO("seed " << seed);
    CHECK(calls_of(arms, 0, 1300) > 90);
    CHECK(calls_of(arms, 0, 400) > 900);
    check_beliefs(p, most_s);
  }
}

TEST_CASE("after a while in which all is a thousand times slower a good arm is in use again") {
  int lost = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    knowledge_gradient_policy p(cold(seed));
    arm_book book;
    random_stream r(77 * seed);
    double most_s = 0;
    const auto arms = make_calls(p, book, 2000, [&](int arm, std::int64_t call) {
      double s = 65e-6 * std::exp(0.05 * r.normal());
      if (call >= 400 && call < 430) s *= 1000 * std::exp(0.3 * r.normal());
      if (arm != 0 && arm != 5) s *= 1.5;
      most_s = std::max(most_s, s);
      return s;
    });
    INFO("seed " << seed);
    lost += calls_of(arms, 0, 1000) + calls_of(arms, 5, 1000) <= 900;
    check_beliefs(p, most_s);
  }
  CHECK(lost <= 2);
}

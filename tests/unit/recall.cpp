// SPDX-License-Identifier: BSL-1.0
//
// Priors from the knowledge of earlier runs, and their limits. The store is tested in store.cpp.
#include "railpass/knowledge/recall.hpp"

#include "railpass/knowledge/joined.hpp"
#include "railpass/knowledge/recalling.hpp"
#include "railpass/select/belief/prior.hpp"
#include "railpass/select/policies.hpp"
#include "railpass/select/policy/policy.hpp"
#include "railpass/select/policy/random.hpp"
#include "support/catch.hpp"

#include <cmath>
#include <map>
#include <memory>

using namespace railpass;
using namespace railpass::knowledge;

namespace {

const problem of_broadcasts{.collective = "broadcast", .num_ranks = 16, .bytes = 65536};

experience known_of(const std::map<std::string, double>& seconds, std::int64_t samples = 100) {
  experience e{.of = of_broadcasts};
  for (const auto& [arm, s] : seconds)
    e.arms.push_back(
        {.arm = arm,
         .calls = samples,
         .times = {.samples = samples,
                   .mean_s = s,
                   .spread = 0.1,
                   .quantiles = {.low_s = 0.9 * s, .median_s = s, .high_s = 1.1 * s}}});
  return e;
}

struct context {
  std::vector<arm> arms = arms_of(collective::broadcast);
  machine_model machine = select::generic_machine();
  std::vector<select::arm_prior> plain = select::priors_of(
      arms,
      {.machine = machine,
       .key = {.op = collective::broadcast, .size_class = select::size_class_of(65536)},
       .num_ranks = 16,
       .bytes = 65536},
      [](const arm&) { return true; });

  int number_of(const std::string& name) const {
    for (std::size_t i = 0; i < arms.size(); ++i)
      if (name_of(arms[i]) == name) return int(i);
    return -1;
  }
  /// The given times, and `others_s` for all other arms.
  std::map<std::string, double> times(std::map<std::string, double> some, double others_s) const {
    for (const arm& a : arms) some.try_emplace(name_of(a), others_s);
    return some;
  }
  const select::arm_prior& prior_of(const std::vector<select::arm_prior>& all,
                                    const std::string& name) const {
    return *std::ranges::find(all, number_of(name), &select::arm_prior::arm);
  }
  std::vector<select::arm_prior> with(const experience& known, double octaves = 0) const {
    std::vector<select::arm_prior> priors = plain;
    correct_by_experience(
        priors, [this](int arm) { return name_of(arms[std::size_t(arm)]); }, known, plain, octaves);
    return priors;
  }
};

/// Calls of a policy on a simulated machine: every call is timed and learnt at once.
class machine_of_arms {
 public:
  /// @param cold an arm's first call takes this many times as long
  machine_of_arms(const context& c, std::map<std::string, double> seconds, double others_s,
                  double cold = 1)
      : others_s_(others_s), cold_(cold) {
    for (const auto& [name, s] : seconds) seconds_[c.number_of(name)] = s;
  }
  double seconds(int arm) const {
    const auto known = seconds_.find(arm);
    return known != seconds_.end() ? known->second : others_s_;
  }
  /// The total time of `calls` further calls; `count` counts calls by arm.
  double play(select::policy& p, int calls, std::map<int, int>& count) {
    double total_s = 0;
    for (const std::int64_t end = made_ + calls; made_ < end;) {
      const select::epoch_plan plan = p.plan({.calls = made_, .merge_cost_s = 1e-6});
      std::vector<select::observation> merged;
      std::size_t next = 0;
      for (int i = 0; i < std::min(plan.length, 64) && made_ < end; ++i, ++made_) {
        const bool explored = next < plan.explore.size() && plan.explore[next].position <= i;
        const int arm = explored ? plan.explore[next++].arm : plan.incumbent;
        const double s =
            (count[arm] == 0 ? cold_ : 1) * seconds(arm) * std::exp(0.05 * random_.normal());
        total_s += s;
        ++count[arm];
        merged.push_back({.arm = arm, .seconds = s});
      }
      book_.add(merged, made_);
      p.learn(book_);
    }
    return total_s;
  }

 private:
  std::map<int, double> seconds_;
  double others_s_, cold_;
  std::int64_t made_ = 0;
  select::random_stream random_{7};
  select::arm_book book_;
};

std::unique_ptr<select::policy> recalling(const context& c, const experience& known) {
  const auto make = [](const std::vector<select::arm_prior>& priors) {
    return select::make_policy("knowledge_gradient", {.priors = priors});
  };
  return std::make_unique<recalling_policy>(make(c.with(known)),
                                            [make, plain = c.plain] { return make(plain); });
}

}  // namespace

TEST_CASE("what an arm took before is what it is believed to take, the better it is known") {
  const context c;
  const auto priors = c.with(known_of({{"native", 3e-4}, {"binomial", 1e-4}}));
  const auto& native = c.prior_of(priors, "native");
  CHECK_FALSE(native.measured_only);
  CHECK(native.remembered);
  CHECK(std::exp(native.log_seconds) == Approx(3e-4).epsilon(0.05));
  CHECK(std::exp(c.prior_of(priors, "binomial").log_seconds) == Approx(1e-4).epsilon(0.05));
  CHECK(c.prior_of(priors, "binomial").spread < 0.1);
  CHECK_FALSE(c.prior_of(priors, "linear").remembered);

  const auto by_few = c.with(known_of({{"native", 3e-4}, {"binomial", 1e-4}}, 2));
  CHECK(c.prior_of(by_few, "binomial").spread > c.prior_of(priors, "binomial").spread);
  // Among many arms with few samples, the fastest one was probably lucky.
  CHECK(c.prior_of(by_few, "binomial").log_seconds > c.prior_of(priors, "binomial").log_seconds);
}

TEST_CASE("few samples tell nothing beside a sure prediction, unless they contradict it") {
  context c;
  for (select::arm_prior& p : c.plain) p.spread = 0.1;
  const double predicted_s = std::exp(c.prior_of(c.plain, "binomial").log_seconds);
  const auto prior_with = [&](double factor) {
    return c.prior_of(c.with(known_of({{"binomial", factor * predicted_s}}, 2)), "binomial");
  };
  CHECK(std::exp(prior_with(1.2).log_seconds) == Approx(predicted_s));
  CHECK(prior_with(1.2).spread == Approx(0.1));
  CHECK(std::exp(prior_with(30).log_seconds) > 20 * predicted_s);
  CHECK(prior_with(30).spread > 0.1);
  // No other arm is believed to be as slow.
  const double others_s = std::exp(c.prior_of(c.plain, "chain").log_seconds);
  for (const std::int64_t samples : {2, 100}) {
    experience known = known_of({{"chain", others_s}}, samples);
    known.arms.push_back(known_of({{"binomial", 30 * predicted_s}}, 2).arms[0]);
    const auto priors = c.with(known);
    for (const std::string other : {"linear", "chain"})
      CHECK(c.prior_of(priors, other).log_seconds ==
            Approx(c.prior_of(c.plain, other).log_seconds).margin(0.02));
  }
}

TEST_CASE("what was learnt long ago is believed less") {
  const arm_experience arm = known_of({{"native", 3e-4}}).arms[0];
  CHECK(told_by(arm, 30).spread > 1.2 * told_by(arm).spread);
  CHECK(told_by(arm, 365).spread > 3 * told_by(arm).spread);
  CHECK(told_by(arm, 365).spread < 0.2);
  CHECK(*days_between("2026-01-30T12:00:00Z", "2026-02-01T00:00:00Z") == Approx(1.5));
  CHECK(*days_between("2026-02-01T00:00:00Z", "2026-01-30T12:00:00Z") == 0);
  CHECK_FALSE(days_between("", "2026-02-01T00:00:00Z"));
}

TEST_CASE("another size tells less, and nothing of native") {
  const context c;
  const experience known = known_of({{"native", 3e-4}, {"binomial", 1e-4}});
  const auto near = c.with(known, 1), far = c.with(known, 3);
  CHECK(c.prior_of(near, "native").measured_only);
  CHECK_FALSE(c.prior_of(near, "binomial").remembered);
  CHECK(c.prior_of(near, "binomial").spread < c.prior_of(far, "binomial").spread);
}

TEST_CASE("problems are close by size alone, all else must be equal") {
  problem other = of_broadcasts;
  CHECK(*distance(other, of_broadcasts) == 0);
  other.bytes *= 4;
  CHECK(*distance(other, of_broadcasts) == Approx(2));
  other.bytes *= 1024;
  CHECK_FALSE(distance(other, of_broadcasts));
  other = of_broadcasts;
  SECTION("ranks") { other.num_ranks = 8; }
  SECTION("ranks per node") { other.ranks_per_node = 2; }
  SECTION("rails") { other.rails = "eth1,eth2"; }
  SECTION("collective") { other.collective = "reduce"; }
  SECTION("operation") { other.operation = "user_ordered"; }
  CHECK_FALSE(distance(other, of_broadcasts));
  const std::vector<experience> all{{.of = other}};
  CHECK_FALSE(closest(all, of_broadcasts));
}

TEST_CASE("runs whose mean sizes differ a little are joined, and others are not") {
  const auto run = [](std::int64_t bytes, const char* arm, double seconds, const char* at) {
    experience e = known_of({{arm, seconds}});
    e.of.bytes = bytes;
    e.first_at = e.last_at = at;
    return e;
  };
  const std::vector<experience> all{
      run(1'000'010, "native", 3e-4, "2026-01-02T00:00:00Z"),
      run(1'000'000, "binomial", 1e-4, "2026-01-01T00:00:00Z"),
      run(1'000'020, "native", 5e-4, "2026-01-03T00:00:00Z"),
      run(2'000'000, "chain", 1e-4, "2026-01-04T00:00:00Z"),
  };
  problem of = of_broadcasts;
  of.bytes = 1'000'003;
  const auto found = closest(all, of);
  REQUIRE(found);
  CHECK(found->of.bytes == 1'000'000);
  CHECK(found->runs == 3);
  CHECK(found->first_at == "2026-01-01T00:00:00Z");
  REQUIRE(found->arms.size() == 2);
  for (const arm_experience& a : found->arms) {
    CHECK(a.arm != "chain");
    if (a.arm == "native") CHECK(a.times.samples == 2 * all[0].arms[0].times.samples);
  }
}

TEST_CASE("a context that was seen before begins with its best arm") {
  const context c;
  const auto truth =
      c.times({{"native", 3e-4}, {"binomial", 2e-4}, {"double_binary_tree", 1e-4}}, 1e-3);
  const auto p = recalling(c, known_of(truth));
  CHECK(p->plan({.merge_cost_s = 1e-6}).incumbent == c.number_of("double_binary_tree"));
  std::map<int, int> count;
  machine_of_arms machine(c, truth, 1e-3);
  CHECK(machine.play(*p, 100, count) < 1.05 * 100 * 1e-4);
  CHECK(p->reason().find("earlier runs are counted in") != std::string::npos);
}

TEST_CASE("a machine that is slower altogether contradicts nothing") {
  const context c;
  const std::map<std::string, double> truth{{"native", 3e-4}, {"double_binary_tree", 1e-4}};
  const auto p = recalling(c, known_of(c.times(truth, 1e-3)));
  std::map<int, int> count;
  machine_of_arms machine(c, {{"native", 6e-4}, {"double_binary_tree", 2e-4}}, 2e-3);
  machine.play(*p, 200, count);
  CHECK(count[c.number_of("double_binary_tree")] > 150);
  CHECK(p->reason().find("earlier runs are counted in") != std::string::npos);
}

TEST_CASE("a slow first call of an arm asks for no call of native") {
  const context c;
  const std::map<std::string, double> truth{{"native", 20e-3}, {"double_binary_tree", 3e-4}};
  const auto p = recalling(c, known_of(c.times(truth, 30e-3)));
  std::map<int, int> count;
  machine_of_arms machine(c, truth, 30e-3, 3);
  machine.play(*p, 1, count);
  machine.play(*p, 29, count);
  CHECK(count[c.number_of("native")] == 0);
  CHECK(count[c.number_of("double_binary_tree")] == 30);
  CHECK(p->reason().find("earlier runs are counted in") != std::string::npos);
}

TEST_CASE("what was the best arm and is a bad one costs few calls") {
  const context c;
  const auto p =
      recalling(c, known_of(c.times({{"native", 3e-4}, {"double_binary_tree", 1e-4}}, 5e-4)));
  std::map<int, int> count;
  machine_of_arms machine(c, {{"native", 3e-4}, {"double_binary_tree", 15e-4}}, 5e-4);
  machine.play(*p, 300, count);
  CHECK(count[c.number_of("double_binary_tree")] < 8);
}

TEST_CASE("knowledge that is contradicted is set aside") {
  const context c;
  // The arm that was three times as fast as native is hardly faster now.
  const auto p =
      recalling(c, known_of(c.times({{"native", 3e-4}, {"double_binary_tree", 1e-4}}, 5e-4)));
  std::map<int, int> count;
  machine_of_arms machine(c, {{"native", 3e-4}, {"double_binary_tree", 2.8e-4}}, 5e-4);
  machine.play(*p, 300, count);
  INFO(p->reason());
  CHECK(p->reason().find("contradict") != std::string::npos);
  // The priors of the new policy know no earlier run.
  CHECK(std::ranges::none_of(p->arms(), &select::arm_prior::remembered));
}

TEST_CASE("native's known time grows with the size as the predictions of the arms do") {
  const context c;
  const experience known = known_of(c.times({{"native", 2e-4}}, 1e-4));
  // The known problem is a little smaller, and of the same class of sizes.
  std::vector<select::arm_prior> there = c.plain;
  for (select::arm_prior& p : there) p.log_seconds -= std::log(1.8);
  std::vector<select::arm_prior> priors = c.plain;
  correct_by_experience(
      priors, [&](int arm) { return name_of(c.arms[std::size_t(arm)]); }, known, there, 0);
  const select::arm_prior same = c.prior_of(c.with(known), "native"),
                          native = c.prior_of(priors, "native");
  CHECK(std::exp(same.log_seconds) == Approx(2e-4).epsilon(0.02));
  CHECK(native.log_seconds == Approx(same.log_seconds + std::log(1.8)));
  CHECK(native.spread > same.spread);
  CHECK(native.spread < 0.3);
}

TEST_CASE("versions of a set begin with what they took before") {
  const std::vector<std::string> names{"first", "second", "third"};
  std::vector<select::arm_prior> priors =
      select::arms_of_versions(std::vector<std::vector<double>>{{8}, {16}, {32}});
  const auto plain = priors;
  experience known = known_of({{"first", 2e-3}, {"third", 1e-3}, {"gone", 1e-4}});
  remember_times(priors, known, [&](int arm) { return names[std::size_t(arm)]; });
  CHECK(priors[1] == plain[1]);
  for (const int arm : {0, 2}) {
    const select::arm_prior& p = priors[std::size_t(arm)];
    CHECK(p.remembered);
    CHECK_FALSE(p.measured_only);
    CHECK(std::exp(p.log_seconds) == Approx(arm == 0 ? 2e-3 : 1e-3).epsilon(0.05));
  }
  const auto policy = select::make_policy("knowledge_gradient", {.priors = priors});
  CHECK(policy->plan({}).incumbent == 2);
}

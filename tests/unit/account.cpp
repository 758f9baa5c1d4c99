// SPDX-License-Identifier: BSL-1.0
//
// One account for all communicators that a process leads: the total cost of many communicators, and
// the memory of their contexts.
#include "railpass/select/lockstep/account.hpp"

#include "railpass/select/lockstep/lockstep.hpp"
#include "railpass/select/policies.hpp"
#include "railpass/select/policy/random.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <malloc.h>
#include <memory>
#include <string>
#include <vector>

using namespace railpass;
using namespace railpass::select;

namespace {

constexpr int num_arms = 12, num_sizes = 17;

context_key key_of(int size_class) {
  return {.op = collective::all_reduce, .size_class = std::uint8_t(size_class)};
}

double native_s(int size_class) { return 1e-5 * (1 + size_class); }

std::vector<arm_prior> some_arms(int count, double log_seconds) {
  std::vector<arm_prior> priors;
  priors.reserve(std::size_t(count));
  priors.push_back({.arm = 0, .native = true, .measured_only = true});
  for (int a = 1; a < count; ++a)
    priors.push_back({.arm = a, .log_seconds = log_seconds + 0.02 * a, .family = 1 + a / 3});
  return priors;
}

/// A leader that represents the ranks of one communicator, with equal measurements. Contexts start
/// as in lib/tuner/tuned_contexts.cpp.
class communicator {
 public:
  communicator(account& of_process, std::uint64_t seed)
      : account_(of_process), seed_(seed), random_(seed) {
    steps_.expect({.spread_s = 1e-5, .at_once_s = merge_s}, 0, &of_process);
    for (double& f : factors_) f = std::exp(1.2 * random_.uniform() - 0.3);
  }

  /// One call that starts at that time; returns its duration.
  double call(int size_class, double now_s) {
    const double merged_s = merge(now_s);
    double decided_s = 0;
    timed_call c = steps_.next_call(key_of(size_class));
    if (c.needs_first_plan) {
      steps_.adopt(c.context, steps_.lead(c.context, policy_of(c.context, size_class, now_s)));
      c = steps_.next_call(key_of(size_class));
      if (std::ranges::find(undecided_, c.context) == undecided_.end()) decided_s = decision_s;
    }
    const double arm_s =
        native_s(size_class) * (c.arm == native_arm ? 1 : factors_[std::size_t(c.arm)]);
    if (c.timed) {
      steps_.record(c, arm_s);
      decided_s += decide_at_last(c.context, size_class, now_s);
    }
    return merged_s + decided_s + arm_s;
  }

 private:
  static constexpr double merge_s = 3e-5, decision_s = 1e-4;

  double merge(double now_s) {
    if (!steps_.begin_call()) return 0;
    double took_s = 0;
    steps_.begin_steps(now_s);
    while (steps_.due() != merge_step::none)
      if (steps_.step_alone()) took_s += merge_s;
    steps_.end_steps(now_s + took_s);
    return took_s;
  }
  std::unique_ptr<policy> policy_of(int context, int size_class, double now_s) {
    if (!account_.allows_more(now_s)) {
      undecided_.push_back(context);
      return make_policy("native", {.priors = some_arms(1, 0)});
    }
    account_.spend(decision_s);
    return make_policy("knowledge_gradient",
                       {.priors = some_arms(num_arms, std::log(native_s(size_class))),
                        .seed = seed_,
                        .all_wait = true});
  }
  double decide_at_last(int context, int size_class, double now_s) {
    if (std::ranges::find(undecided_, context) == undecided_.end() || !account_.allows_more(now_s))
      return 0;
    std::erase(undecided_, context);
    steps_.change_policy(context, policy_of(context, size_class, now_s));
    return decision_s;
  }

  account& account_;
  std::uint64_t seed_;
  random_stream random_;
  lockstep steps_{{}};
  std::array<double, num_arms> factors_{};
  std::vector<int> undecided_;
};

/// The time of alternating communicators beyond native's time, and native's time.
struct lives {
  double beyond_s = 0, native_s = 0;
};
lives play(account& of_process, int communicators, int rounds, std::uint64_t seed) {
  std::deque<communicator> all;
  for (int i = 0; i < communicators; ++i) all.emplace_back(of_process, seed + std::uint64_t(i));
  lives result;
  double now_s = 0;
  for (int round = 0; round < rounds; ++round)
    for (communicator& one : all) {
      now_s += one.call(round % num_sizes, now_s);
      result.native_s += native_s(round % num_sizes);
    }
  result.beyond_s = now_s - result.native_s;
  return result;
}

std::size_t bytes_in_use() { return mallinfo2().uordblks; }

/// The leader's memory per context, averaged over many.
double bytes_per_context(const std::string& policy, int arms) {
  constexpr int contexts = 64;
  const std::size_t before = bytes_in_use();
  lockstep steps({});
  for (int i = 0; i < contexts; ++i) {
    steps.begin_call();
    const timed_call c = steps.next_call(key_of(i));
    steps.adopt(c.context,
                steps.lead(c.context, make_policy(policy, {.priors = some_arms(arms, -11)})));
  }
  return double(bytes_in_use() - before) / contexts;
}

}  // namespace

TEST_CASE("an account allows a share of the time in calls and of the run, and something for free") {
  account a;
  CHECK(a.allows_more(50));
  a.earn(1);  // 0.03 s and 0.02 s
  a.spend(0.05);
  CHECK(a.allows_more(52));
  a.spend(0.003);
  CHECK(a.spent_s() == Approx(0.053));
  CHECK(!a.allows_more(52));
  CHECK(a.allows_more(52.4));
  a.earn(-1);
  CHECK(a.allows_more(0));
}

TEST_CASE("merges of one communicator and trials of long calls are free up to a bound") {
  account a;
  a.allow(0, 1e-3);
  a.spend_on_trials(0.04);
  CHECK(a.allows_more(0));
  a.spend_on_trials(0.002);
  CHECK(!a.allows_more(0));
  CHECK(a.spent_s() == Approx(0.042));
  account b;
  b.allow(5e-4, 1e-3);
  b.spend(0.0019);
  CHECK(b.allows_more(0));
  b.spend(0.0002);
  CHECK(!b.allows_more(0));
}

TEST_CASE("setting up the first communicator is free, and waiting for late ranks is no work") {
  account a;
  a.spend_on_set_up(1);
  CHECK(a.spent_s() == 0);
  a.spend_on_set_up(1e-4);
  CHECK(a.spent_s() == Approx(1e-4));
  a.spend_on_set_up(1);
  CHECK(a.spent_s() < 2e-3);
}

TEST_CASE("checks take a share of the calls' time, and short ones a little before that") {
  account a;
  CHECK(a.grant_checks(0.01, 1e-4, 3) == 3);
  CHECK(a.grant_checks(0.01, 1e-4, 50) == 7);
  CHECK(a.grant_checks(0.01, 1e-4, 50) == 0);
  a.earn(0);  // what was granted and not spent is free again
  CHECK(a.grant_checks(0.01, 1e-4, 50) == 10);
  a.earn(0);
  CHECK(a.grant_checks(0.01, 2e-3, 1) == 0);
  a.earn(0.3);
  CHECK(a.grant_checks(0.01, 2e-3, 50) == 1);
  a.spend_on_checks(2e-3);
  a.earn(0.1);
  CHECK(a.grant_checks(0.01, 2e-3, 50) == 1);
  a.spend_on_checks(1);
  a.earn(0.1);
  CHECK(a.grant_checks(0.01, 1e-4, 50) == 0);
}

TEST_CASE("many communicators of few calls cost little more than their calls") {
  const std::uint64_t seed = test::new_seed();
  INFO("TEST_SEED=" << seed);
  for (const int rounds : {60, 120, 600}) {
    account a;
    const lives many = play(a, 20, rounds, seed);
    CAPTURE(rounds, many.beyond_s, many.native_s, a.spent_s());
    CHECK(many.beyond_s <= 0.003 + 0.05 * many.native_s);
  }
}

TEST_CASE("one communicator is tuned as if there were no others") {
  const std::uint64_t seed = test::new_seed();
  INFO("TEST_SEED=" << seed);
  account a;
  const lives one = play(a, 1, 4000, seed);
  CHECK(one.beyond_s < 0.06 * one.native_s);
}

TEST_CASE("a context's memory grows with the arms that run, not with those there are") {
  const double few = bytes_per_context("native", 2), many = bytes_per_context("native", 130);
  CAPTURE(few, many);
  CHECK(many - few < 128 * double(sizeof(arm_prior)) + 128 * 64);
  CHECK(few < 2500);
  CHECK(bytes_per_context("knowledge_gradient", 40) < 24 * 1024);
}

TEST_CASE("a rank that follows keeps a few hundred bytes of a context") {
  constexpr int contexts = 64;
  lockstep follower({}, 1, 2);
  const std::size_t before = bytes_in_use();
  for (int i = 0; i < contexts; ++i) (void)follower.next_call(key_of(i));
  CHECK(double(bytes_in_use() - before) / contexts < 800);
}

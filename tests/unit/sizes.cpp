// SPDX-License-Identifier: BSL-1.0
//
// Calls whose lengths only pairs of ranks know: what merges report of their sizes decides about
// predictions, arms, and whether calls ask for their size. Ranks are simulated.
#include "railpass/select/lockstep/sizes.hpp"

#include "railpass/knowledge/imports.hpp"
#include "railpass/select/belief/neighbours.hpp"
#include "railpass/select/lockstep/lockstep.hpp"
#include "railpass/select/policies.hpp"
#include "railpass/select/policy/sized_policy.hpp"
#include "railpass/select/statistics/summary.hpp"
#include "support/catch.hpp"
#include "support/merge_mail.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace railpass;
using namespace railpass::select;

namespace {

// Native is good at everything and best at nothing; arm 1 is for short calls, arm 2 for long ones.
constexpr int num_arms = 3;
double arm_seconds(int arm, double bytes) {
  constexpr double start_s[num_arms] = {60e-6, 25e-6, 300e-6},
                   bytes_per_s[num_arms] = {1e9, 0.3e9, 4e9};
  return start_s[arm] + bytes / bytes_per_s[arm];
}

std::vector<arm_prior> priors_for(double bytes) {
  std::vector<arm_prior> priors{{.arm = 0, .native = true, .measured_only = true}};
  for (int a = 1; a < num_arms; ++a)
    priors.push_back({.arm = a, .log_seconds = std::log(arm_seconds(a, bytes)), .family = a});
  return priors;
}

/// A communicator whose ranks are all here and make calls of an all_to_allv.
class ranks {
 public:
  ranks(int num_ranks, double ask_s, double min_bytes = 0) : ask_s_(ask_s), min_bytes_(min_bytes) {
    for (int r = 0; r < num_ranks; ++r) steps_.emplace_back(lockstep_settings{}, r, num_ranks);
    steps_[0].expect({.spread_s = 4e-6, .at_once_s = 20e-6, .ask_s = ask_s});
  }

  /// One call: one rank sends and receives `bytes`, the other ranks less. Returns the arm.
  int call(double bytes) {
    for (lockstep& ls : steps_)
      if (ls.begin_call()) ls.begin_steps(now_s_);
    REQUIRE(mail_.make_steps(steps_, [&](int r, merge_outcome outcome) {
      REQUIRE(outcome == merge_outcome::agreed);
      steps_[std::size_t(r)].end_steps(now_s_ + 4e-6);
    }));
    context_key key{.op = collective::all_to_allv, .size_class = context_key::any_size};
    asked_ = steps_[0].asks_size(key);
    for (lockstep& ls : steps_) REQUIRE(ls.asks_size(key) == asked_);
    if (asked_)
      key.size_class =
          bytes < min_bytes_ ? context_key::below_least : size_class_of(std::int64_t(bytes));
    timed_call first;
    for (std::size_t r = 0; r < steps_.size(); ++r) {
      timed_call c = steps_[r].next_call(key);
      if (r == 0 && c.needs_first_plan) message_ = steps_[0].lead(c.context, made(key, bytes));
      if (c.needs_first_plan) {
        steps_[r].adopt(c.context, message_);
        c = steps_[r].next_call(key);
      }
      if (r == 0) first = c;
      REQUIRE((c.arm == first.arm && c.timed == first.timed && c.context == first.context));
    }
    const double seconds = arm_seconds(first.arm, bytes) + (asked_ ? ask_s_ : 0);
    if (first.timed)
      for (std::size_t r = 0; r < steps_.size(); ++r) {
        steps_[r].note_size(
            first, {.bytes = std::int64_t(bytes / double(1 + r)), .asked_s = asked_ ? ask_s_ : -1});
        steps_[r].record(first, seconds);
      }
    now_s_ += seconds;
    taken_s_ += seconds;
    return first.arm;
  }
  /// Mean time of calls of these sizes in turns.
  double mean_s(const std::vector<double>& bytes, int calls) {
    taken_s_ = 0;
    for (int i = 0; i < calls; ++i) call(bytes[std::size_t(i) % bytes.size()]);
    return taken_s_ / calls;
  }

  bool asked() const { return asked_; }  ///< the last call did
  std::vector<double> made_for() const { return *made_for_; }
  const lockstep& leader() const { return steps_[0]; }
  void change_ask(double seconds) { ask_s_ = seconds; }

 private:
  std::unique_ptr<policy> made(const context_key& key, double bytes) {
    const auto make = [made_for = made_for_](double of_bytes) {
      made_for->push_back(of_bytes);
      return make_policy("knowledge_gradient", {.priors = priors_for(of_bytes), .all_wait = true});
    };
    if (key.size_class == context_key::below_least)
      return make_policy("native", {.priors = priors_for(bytes)});
    if (!key.is_of_any_size()) return make(bytes);
    constexpr double guessed = 8;
    return std::make_unique<sized_policy>(
        make(guessed), guessed, min_bytes_,
        [make](double of_bytes, const sized_policy::part&) { return make(of_bytes); });
  }

  double ask_s_, min_bytes_;
  std::vector<lockstep> steps_;
  test::merge_mail mail_;
  plan_message message_{};
  double now_s_ = 0, taken_s_ = 0;
  bool asked_ = false;
  std::shared_ptr<std::vector<double>> made_for_ = std::make_shared<std::vector<double>>();
};

constexpr double small = 8, large = 1 << 20;

double best_s(double bytes) {
  double best = arm_seconds(0, bytes);
  for (int a = 1; a < num_arms; ++a) best = std::min(best, arm_seconds(a, bytes));
  return best;
}

}  // namespace

TEST_CASE("reports tell the largest size and the least that asking took") {
  const auto sample = [](rank_size size) {
    return timed_sample{.context = 0,
                        .arm = 1,
                        .explored = false,
                        .call = 3,
                        .arm_before = 0,
                        .seconds = 1e-3F,
                        .size = size};
  };
  const std::vector<timed_sample> mine{sample({}), sample({.bytes = 0}),
                                       sample({.bytes = 12345, .asked_s = 3e-6})};
  const std::vector<timed_sample> others{sample({}), sample({.bytes = 0}),
                                         sample({.bytes = 99, .asked_s = 2e-6})};
  merge_report report, childs;
  report.write(7, 1, 0, {}, mine, 16);
  childs.write(7, 1, 0, {}, others, 16);
  report.add(childs.words());
  CHECK_FALSE(report.size(0));
  CHECK(report.size(1).value().bytes == 0);
  CHECK_FALSE(report.size(1)->asked_s);
  CHECK(report.size(2).value().bytes == 12345);
  CHECK(report.size(2)->asked_s.value() == Approx(2e-6));
}

TEST_CASE("sizes vary by what the latest ones differ") {
  seen_sizes sizes;
  for (int i = 0; i < 7; ++i) sizes.add(i % 2 ? 100 : 800);
  CHECK_FALSE(sizes.vary_by(8));  // too few
  sizes.add(100);
  CHECK(sizes.vary_by(8));
  CHECK_FALSE(sizes.vary_by(8.1));
  CHECK(sizes.record().largest == 800);
  CHECK(sizes.record().smallest == 100);
  CHECK(sizes.record().mean == Approx(450));
  for (int i = 0; i < 32; ++i) sizes.add(0);
  CHECK_FALSE(sizes.vary_by(2));
  sizes.add(1);
  CHECK_FALSE(sizes.vary_by(2));
}

TEST_CASE("predictions are for the size that merges report") {
  for (const int num_ranks : {1, 2, 3, 8}) {
    CAPTURE(num_ranks);
    ranks all(num_ranks, 1e-3);
    // They differ, but by less than a factor of 2.
    const std::vector<double> about{large, 1.3 * large, 0.8 * large};
    all.mean_s(about, 300);
    CHECK(all.made_for().size() == 2);
    CHECK(all.made_for()[0] == small);  // a guess
    CHECK(all.made_for()[1] > large / 2);
    CHECK(all.leader().incumbent(0) == 2);
    CHECK(all.leader().policy_of(0)->posterior(2)->mean_s ==
          Approx(arm_seconds(2, large)).epsilon(0.2));
    CHECK(all.leader().sizes(0).value().largest == Approx(1.3 * large));
    CHECK_FALSE(all.asked());
    // The program goes over to short calls.
    all.mean_s({64}, 1000);
    CHECK(all.mean_s({64}, 500) < 1.1 * arm_seconds(1, 64));
    CHECK(all.made_for().size() == 3);
    CHECK(all.leader().incumbent(0) == 1);
  }
}

TEST_CASE("parts may have other arms") {
  const auto fewer = [](double, const sized_policy::part&) {
    std::vector<arm_prior> priors = priors_for(large);
    priors.erase(priors.begin() + 1);
    return make_policy("knowledge_gradient", {.priors = std::move(priors)});
  };
  sized_policy all(make_policy("knowledge_gradient", {.priors = priors_for(small)}), small, 0,
                   fewer);
  arm_book book;
  for (int calls = 0; calls < 30; ++calls) {
    const observation seen[] = {{.arm = 0, .seconds = 1e-3, .bytes = small},
                                {.arm = 2, .seconds = 2e-3, .bytes = large}};
    book.add(seen, calls);
    all.learn(book);
    all.plan({.calls = calls});
    CHECK(all.probabilities().size() == all.arms().size());
  }
  CHECK_FALSE(all.posterior(1));
}

TEST_CASE("calls below the least size are native on all ranks as long as merges report such") {
  ranks all(4, 1e-3, 4096);
  for (int i = 0; i < 200; ++i) CHECK(all.call(64) == native_arm);
  CHECK(all.leader().policy_of(0)->reason() == "the mean size, 64, is below the setting min_bytes");
  CHECK(all.leader().policy_of(0)->probabilities() == std::vector<double>{1, 0, 0});
  all.mean_s({large}, 2000);
  CHECK(all.leader().incumbent(0) == 2);
  all.mean_s({64}, 6000);
  for (int i = 0; i < 200; ++i) CHECK(all.call(64) == native_arm);
}

TEST_CASE("the mean size is that of the calls, not of the first of similar size") {
  ranks all(2, 1e-3, 4096);
  all.call(7000);
  for (int i = 0; i < 600; ++i) all.call(3600);
  CHECK(all.leader().incumbent(0) == native_arm);
  CHECK(all.leader().policy_of(0)->reason().starts_with("the mean size, 3.5"));
}

TEST_CASE("where asking costs little, calls of different sizes take different arms") {
  for (const int num_ranks : {1, 2, 3, 4, 7, 8}) {
    CAPTURE(num_ranks);
    constexpr double ask_s = 1.5e-6;
    ranks all(num_ranks, ask_s);
    all.mean_s({small, large}, 400);
    CHECK(all.asked());
    const double best = (best_s(small) + best_s(large)) / 2 + ask_s;
    CHECK(all.mean_s({small, large}, 2000) < 1.05 * best);
    // Where sizes vary no more it is not worth its cost.
    all.mean_s({large}, 2000);
    CHECK_FALSE(all.asked());
    CHECK(all.mean_s({large}, 1000) < 1.02 * best_s(large));
  }
}

TEST_CASE("calls that have asked and are below the least size are native") {
  ranks all(2, 1.5e-6, 4096);
  all.mean_s({small, large}, 400);
  CHECK(all.asked());
  for (int i = 0; i < 300; ++i) {
    CHECK(all.call(small) == native_arm);
    all.call(large);
  }
  CHECK(all.asked());
  CHECK(all.mean_s({large}, 1000) < 1.05 * best_s(large));
}

TEST_CASE("calls do not go on asking where that takes longer than was expected") {
  ranks all(2, 1.5e-6);
  all.mean_s({small, large}, 200);
  CHECK(all.asked());
  all.change_ask(30e-6);
  all.mean_s({small, large}, 2000);
  CHECK_FALSE(all.asked());
}

TEST_CASE("where asking costs much, the arm is taken with which all calls take the least time") {
  const auto least = [](const std::vector<double>& bytes) {
    double best = 1;
    for (int a = 0; a < num_arms; ++a) {
      double sum = 0;
      for (const double b : bytes) sum += arm_seconds(a, b) / double(bytes.size());
      best = std::min(best, sum);
    }
    return best;
  };
  // In the second one long calls are rare but take most of the time, and native is the best for all
  // of them together and for no size.
  const std::vector<double> rarely{small, small, small, small, small, small, small, large};
  for (const std::vector<double>& bytes : {std::vector{small, large}, rarely}) {
    ranks all(4, 50e-6);
    all.mean_s(bytes, 3000);
    CHECK_FALSE(all.asked());
    CHECK(all.mean_s(bytes, 3000) < 1.05 * least(bytes));
  }
}

TEST_CASE("statistics name the sizes seen, and knowledge has nothing of mixed ones") {
  context_statistics c{
      .collective = "gatherv",
      .num_ranks = 8,
      .from_bytes = 10000,
      .to_bytes = 12800,
      .mean_bytes = 12288,
      .calls = 5,
      .arms = {{.arm = "native", .calls = 5, .times = {.samples = 5, .mean_s = 1e-3}}}};
  CHECK(name_of(c) == "gatherv of about 12KiB on 8 ranks");
  CHECK_FALSE(mixes_sizes(c));
  CHECK(knowledge::record_of({.contexts = {c}}).contexts.size() == 1);
  const auto remembered = [&c](std::int64_t first, double mean) {
    c.first_bytes = first;
    c.mean_bytes = mean;
    return knowledge::record_of({.contexts = {c}}).contexts.at(0).of.bytes;
  };
  CHECK(remembered(12290, 12290.25) == 12288);
  CHECK(remembered(12285, 12284.75) == 12288);
  CHECK(remembered(12284, 12284.4) == 12288);
  CHECK(remembered(11000, 11000.5) == 11008);
  c.to_bytes = c.from_bytes;  // all calls had one size
  CHECK(remembered(10000, 10000) == 10000);
  c.first_bytes = 0;
  c.mean_bytes = 12288;
  c.from_bytes = 0;
  c.to_bytes = 1 << 20;
  CHECK(name_of(c) == "gatherv of about 12KiB (at most 1MiB) on 8 ranks");
  CHECK(mixes_sizes(c));
  CHECK(knowledge::record_of({.contexts = {c}}).contexts.empty());
  c.mean_bytes.reset();
  c.from_bytes = 1 << 19;
  c.to_bytes = (1 << 20) - 1;
  CHECK(name_of(c) == "gatherv of 512KiB to below 1MiB on 8 ranks");
}

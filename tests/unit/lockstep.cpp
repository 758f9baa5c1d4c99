// SPDX-License-Identifier: BSL-1.0
//
// The lockstep: simulated ranks make the same calls with different times. The ranks must take the
// same arms, and detect calls that differ.
#include "railpass/select/lockstep/lockstep.hpp"

#include "lib/tuner/arm_statistics.hpp"
#include "railpass/select/policies.hpp"
#include "railpass/select/policy/random.hpp"
#include "support/catch.hpp"
#include "support/merge_mail.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <new>
#include <optional>
#include <set>

using namespace railpass;
using namespace railpass::select;
using railpass::test::merge_mail;

namespace {

context_key key_of(collective op, int size_class) {
  return {.op = op, .size_class = std::uint8_t(size_class)};
}

std::vector<arm_prior> some_arms(int count) {
  std::vector<arm_prior> priors{{.arm = 0, .native = true, .measured_only = true}};
  for (int a = 1; a < count; ++a)
    priors.push_back({.arm = a, .log_seconds = -9 + 0.2 * a, .family = 1 + a / 3});
  return priors;
}

/// Runs out of memory once it has been asked `questions` times.
class forgetful : public policy {
 public:
  forgetful(int questions, std::vector<arm_prior> priors)
      : left_(questions), base_(make_policy("round_robin", {.priors = std::move(priors)})) {}
  void learn(const arm_book& book) override {
    count();
    base_->learn(book);
  }
  epoch_plan plan(const planning_input& now) override {
    count();
    return base_->plan(now);
  }
  std::span<const arm_prior> arms() const override { return base_->arms(); }
  std::vector<double> probabilities() const override { return base_->probabilities(); }
  std::optional<time_estimate> posterior(int arm) const override { return base_->posterior(arm); }
  std::string reason() const override { return base_->reason(); }

 private:
  void count() {
    if (left_-- == 0) throw std::bad_alloc();
  }
  int left_;
  std::unique_ptr<policy> base_;
};

/// A communicator whose ranks are all in this process.
class ranks {
 public:
  ranks(int num_ranks, const lockstep_settings& settings, std::string policy, std::uint64_t seed,
        const merge_costs& costs = {}, double passed_s = 0)
      : policy_(std::move(policy)), random_(seed), charged_s_(costs.spread_s) {
    for (int r = 0; r < num_ranks; ++r) steps_.emplace_back(settings, r, num_ranks);
    steps_[0].expect(costs, passed_s);
  }

  /// One call on all ranks; returns the arm that all ranks took. Every rank measures the arm's time
  /// plus its own delay.
  timed_call call(const context_key& key, const std::function<double(int arm)>& seconds) {
    start();
    return choose(key, seconds);
  }

  /// Counts the call and makes the steps of a synchronisation on all ranks.
  void start() {
    for (lockstep& ls : steps_)
      if (ls.begin_call()) ls.begin_steps(now_s_);
    REQUIRE(mail_.make_steps(steps_, [&](int r, merge_outcome outcome) {
      if (outcome == merge_outcome::mismatch) ++mismatches_;
      steps_[std::size_t(r)].end_steps(now_s_ + charged_s_);
    }));
  }

  /// No call follows.
  void conclude() {
    for (lockstep& ls : steps_) ls.conclude();
    REQUIRE(mail_.make_steps(
        steps_, [&](int, merge_outcome outcome) { CHECK(outcome == merge_outcome::agreed); },
        &lockstep::last_step));
    CHECK(mail_.is_empty());
  }
  /// Samples that the leader knows.
  std::int64_t samples() const {
    std::int64_t sum = 0;
    for (int c = 0; c < steps_[0].num_contexts(); ++c)
      for (const arm_record& r : steps_[0].records(c)) sum += r.sums.samples;
    return sum;
  }

  std::vector<lockstep>& steps() { return steps_; }
  int mismatches() const { return mismatches_; }
  std::size_t longest_message() const { return mail_.longest(); }
  int most_messages_in_a_call() const { return mail_.busiest(); }

  timed_call choose(const context_key& key, const std::function<double(int arm)>& seconds) {
    timed_call first;
    for (std::size_t r = 0; r < steps_.size(); ++r) {
      timed_call c = steps_[r].next_call(key);
      if (r == 0 && c.needs_first_plan) message_ = steps_[0].lead(c.context, made());
      if (c.needs_first_plan) {
        steps_[r].adopt(c.context, message_);
        c = steps_[r].next_call(key);
      }
      if (r == 0) first = c;
      REQUIRE(c.arm == first.arm);
      REQUIRE(c.timed == first.timed);
      REQUIRE(c.checked == first.checked);
      REQUIRE(c.context == first.context);
      REQUIRE(!c.needs_first_plan);
    }
    const double s = seconds(first.arm);
    if (first.timed)
      for (lockstep& ls : steps_) ls.record(first, s * (1 + 0.1 * random_.uniform()));
    now_s_ += s;
    return first;
  }

  /// Policies created from now on run out of memory; see forgetful.
  void forget_after(int questions) { questions_ = questions; }

 private:
  std::unique_ptr<policy> made() const {
    if (questions_) return std::make_unique<forgetful>(*questions_, some_arms(9));
    return make_policy(policy_, {.priors = some_arms(9)});
  }
  std::string policy_;
  std::optional<int> questions_;
  random_stream random_;
  double charged_s_, now_s_ = 0;
  std::vector<lockstep> steps_;
  merge_mail mail_;
  int mismatches_ = 0;
  plan_message message_{};
};

double arm_seconds(int arm, double scale = 1) {
  return scale * 1e-4 * (arm == 0 ? 1.5 : 1 + 0.25 * std::abs(arm - 4));
}

}  // namespace

TEST_CASE("a merge's trees reach every rank once, and lower levels report first") {
  for (const int radix : {2, 3, 4})
    for (int num_ranks = 1; num_ranks <= 70; ++num_ranks) {
      CAPTURE(radix, num_ranks);
      std::vector<int> parents(std::size_t(num_ranks), -1);
      const int height = tree_position{0, num_ranks, radix}.height();
      for (int r = 0; r < num_ranks; ++r) {
        const tree_position here{r, num_ranks, radix};
        int last_level = 0;
        for (int i = 0; i < here.num_children(); ++i) {
          const tree_position there{here.child(i), num_ranks, radix};
          REQUIRE(there.rank < num_ranks);
          REQUIRE(parents[std::size_t(there.rank)] == -1);
          parents[std::size_t(there.rank)] = r;
          CHECK(there.parent() == r);
          CHECK(there.level() >= last_level);
          last_level = there.level();
        }
        if (here.num_children() > 0) CHECK(last_level < here.level());
      }
      CHECK(std::count(parents.begin(), parents.end(), -1) == 1);  // the root
      CHECK(std::pow(radix, height) >= num_ranks);
      CHECK((num_ranks == 1 || std::pow(radix, height - 1) < num_ranks));
    }
}

TEST_CASE("all ranks take the same arm in every call") {
  const std::uint64_t seed = GENERATE(1U, 2U, 3U, 4U);
  const std::string policy = GENERATE(as<std::string>{}, "knowledge_gradient", "thompson", "pass",
                                      "round_robin", "fixed", "native");
  CAPTURE(seed, policy);
  random_stream random(seed);
  const int num_ranks = 2 + random.below(6);
  ranks all(num_ranks, {.max_contexts = 8}, policy, seed);
  std::map<int, int> calls_of_arm;
  for (int i = 0; i < 3000; ++i) {
    const context_key key =
        key_of(random.below(3) == 0 ? collective::all_reduce : collective::broadcast,
               10 + random.below(3));
    const timed_call c = all.call(key, [](int arm) { return arm_seconds(arm); });
    ++calls_of_arm[c.arm];
    for (int a = 0; a < 9; ++a)
      for (const lockstep& ls : all.steps())
        REQUIRE(ls.share(c.context, a) == Approx(all.steps()[0].share(c.context, a)));
  }
  REQUIRE(all.mismatches() == 0);
  REQUIRE(all.steps()[0].merges() > 3);
  REQUIRE(all.longest_message() <= std::size_t(merge_reply::max_words));
  if (policy == "knowledge_gradient" || policy == "thompson")
    REQUIRE(calls_of_arm[4] > 1500);  // the fastest
  if (policy == "native") REQUIRE(calls_of_arm[0] == 3000);
  if (policy == "fixed") REQUIRE(calls_of_arm[1] == 3000);  // predicted fastest

  // The leader's counts match the actual calls.
  std::int64_t counted = 0;
  const lockstep& leader = all.steps()[0];
  for (int c = 0; c < leader.num_contexts(); ++c)
    for (const arm_record& r : leader.records(c)) {
      counted += r.calls;
      REQUIRE(r.sums.samples <= r.calls);
      REQUIRE(r.sums.samples >= 0);
      calls_of_arm[r.arm] -= int(r.calls);
    }
  REQUIRE(counted == 3000);
  for (const auto& [arm, left] : calls_of_arm) REQUIRE(left == 0);
}

TEST_CASE("the last merge brings the times of the calls since the merge before") {
  const int num_ranks = GENERATE(range(1, 9));
  const int calls = GENERATE(1, 2, 3, 5, 8, 11, 40, 100, 333);
  // The second kind of merges takes one call.
  const merge_costs costs =
      GENERATE(merge_costs{}, merge_costs{.spread_s = 1e-6, .at_once_s = 1e-6});
  CAPTURE(num_ranks, calls, costs.at_once_s);
  ranks all(num_ranks, {}, "knowledge_gradient", std::uint64_t(calls), costs);
  int timed = 0;
  for (int i = 0; i < calls; ++i)
    timed += int(all.call(key_of(collective::broadcast, 10 + i % 3 / 2),
                          [](int arm) { return arm_seconds(arm); })
                     .timed);
  const std::int64_t before = all.samples();
  all.conclude();
  CHECK(all.samples() >= before);
  if (calls <= 8) CHECK(all.samples() == timed);  // else some samples are dropped
  if (calls == 1) CHECK((before == 0 && timed == 1));
  for (const lockstep& ls : all.steps()) CHECK(ls.last_step() == merge_step::none);
}

TEST_CASE("the last merge brings nothing if the ranks have made different calls") {
  ranks all(3, {}, "knowledge_gradient", 1);
  const context_key usual = key_of(collective::all_reduce, 12);
  all.call(usual, [](int arm) { return arm_seconds(arm); });  // before the first merge
  (void)all.steps()[1].next_call(usual);
  all.conclude();
  CHECK(all.samples() == 0);
}

TEST_CASE("the last call does not count if its time ends with a next call") {
  for (const bool awaits : {false, true}) {
    lockstep leader({});
    leader.share_clock();
    leader.begin_call();
    const context_key key = key_of(collective::broadcast, 3);
    const int context = leader.next_call(key).context;
    leader.adopt(context,
                 leader.lead(context, make_policy("knowledge_gradient", {.priors = some_arms(3)})));
    const timed_call c = leader.next_call(key);
    REQUIRE(c.timed);
    leader.record(c, 1e-4);
    if (awaits) leader.await_next(c, 1, 1.0001, {.of = dependence::all_on_root});
    leader.conclude_alone();
    std::int64_t samples = 0;
    for (const arm_record& r : leader.records(0)) samples += r.sums.samples;
    CHECK(samples == (awaits ? 0 : 1));
  }
}

namespace {

/// A policy that learns before its first plan, as after a replacement.
class replaced final : public policy {
 public:
  void learn(const arm_book&) override { probability_.clear(); }
  epoch_plan plan(const planning_input&) override {
    probability_.assign(priors_.size(), 0.5);
    return {.incumbent = 0, .length = 16};
  }
  std::span<const arm_prior> arms() const override { return priors_; }
  std::vector<double> probabilities() const override { return probability_; }
  std::optional<time_estimate> posterior(int) const override { return std::nullopt; }
  std::string reason() const override { return "none"; }

 private:
  std::vector<arm_prior> priors_ = some_arms(3);
  std::vector<double> probability_;
};

}  // namespace

TEST_CASE("statistics are complete although the last merge has replaced the policy") {
  lockstep leader({});
  leader.begin_call();
  const context_key key = key_of(collective::broadcast, 3);
  const int context = leader.next_call(key).context;
  leader.adopt(context, leader.lead(context, std::make_unique<replaced>()));
  leader.record(leader.next_call(key), 1e-4);
  leader.conclude_alone();
  context_statistics told;
  internal::add_arms(
      leader, 0, [](int arm) { return std::to_string(arm); }, told);
  REQUIRE(told.arms.size() == some_arms(3).size());
  for (const arm_statistics& arm : told.arms) CHECK(arm.probability == 0);
}

TEST_CASE("all ranks check the same calls: an early call of each arm, and a share of all calls") {
  constexpr double call_s = 1e-4, check_s = 2e-4, share = 0.1;
  for (const bool checks : {false, true}) {
    ranks all(3, {}, "round_robin", 1);
    if (checks) all.steps()[0].check(share);
    std::set<int> ran, unchecked_arms;
    int checked = 0;
    constexpr int calls = 20000;
    for (int i = 0; i < calls; ++i) {
      const timed_call c = all.call(key_of(collective::broadcast, 10), [&](int) { return call_s; });
      if (ran.insert(c.arm).second) unchecked_arms.insert(c.arm);
      if (i == 100 && checks) CHECK(unchecked_arms.empty());
      if (!c.checked) continue;
      unchecked_arms.erase(c.arm);
      ++checked;
      for (lockstep& ls : all.steps()) ls.note_check(c, check_s);
    }
    CAPTURE(checked, ran.size());
    CHECK(all.mismatches() == 0);
    CHECK(ran.size() == 9);
    CHECK(all.steps()[0].checks(0).calls == checked);
    CHECK(all.steps()[0].checks(0).seconds == Approx(checked * check_s));
    if (!checks) CHECK(checked == 0);
    if (!checks) continue;
    CHECK(checked > share / 2 * calls * call_s / check_s / 2);
    CHECK(checked * check_s < share * calls * call_s);
  }
}

TEST_CASE("contexts whose calls cannot be checked leave the budget of checks to others") {
  lockstep ls({});
  account paying;
  ls.expect({}, 0, &paying);
  ls.check(1);
  int checked = 0;
  for (int i = 0; i < 400; ++i) {
    for (const collective op : {collective::barrier, collective::broadcast}) {
      if (ls.begin_call())
        while (ls.due() != merge_step::none) (void)ls.step_alone();
      const bool may_check = op == collective::broadcast;
      timed_call c = ls.next_call(key_of(op, 4));
      if (c.needs_first_plan) {
        auto chosen = make_policy("round_robin", {.priors = some_arms(9)});
        ls.adopt(c.context, ls.lead(c.context, std::move(chosen), may_check));
        c = ls.next_call(key_of(op, 4));
      }
      ls.record(c, 1e-4);
      if (c.checked) ls.note_check(c, 1e-4);
      CHECK((may_check || !c.checked));
      checked += c.checked;
    }
  }
  CHECK(checked > 0);
}

TEST_CASE("at no time have checks of long calls taken more than their share") {
  constexpr double share = 0.01;
  for (const double call_s : {2e-5, 3e-4}) {
    const double check_s = 4 * call_s + 2e-5;
    ranks all(3, {}, "knowledge_gradient", 1);
    account paying;
    all.steps()[0].expect({}, 0, &paying);
    all.steps()[0].check(share);
    int checked = 0;
    double worst_s = 0;
    for (int i = 0; i < 30000; ++i) {
      const timed_call c = all.call(key_of(collective::broadcast, 10 + i % 5),
                                    [&](int arm) { return call_s * (1 + 0.1 * arm); });
      if (!c.checked) continue;
      for (lockstep& ls : all.steps()) ls.note_check(c, check_s);
      worst_s = std::max(worst_s, ++checked * check_s - share * (i + 1) * call_s);
    }
    CAPTURE(call_s, checked, worst_s);
    CHECK(worst_s < (call_s < 1e-4 ? 1.1e-3 : 1.5 * check_s));
    CHECK(checked * check_s > share / 3 * 30000 * call_s);
  }
}

TEST_CASE("the time of a call is that of its slowest rank") {
  for (const collective op : {collective::broadcast, collective::all_reduce}) {
    CAPTURE(name_of(op));
    ranks all(4, {}, "native", 1);
    std::vector<lockstep>& steps = all.steps();
    for (int i = 0; i < 40; ++i) {
      all.start();
      const timed_call c = all.choose(key_of(op, 4), [](int) { return 1e-3; });
      for (std::size_t r = 0; c.timed && r < steps.size(); ++r)
        steps[r].record(c, 1e-3 * double(r + 1));
    }
    const auto records = steps[0].records(0);
    REQUIRE(records.size() == 1);
    REQUIRE(records[0].sums.samples > 0);
    REQUIRE(records[0].sums.mean_s() == Approx(4e-3).epsilon(1e-4));
  }
}

TEST_CASE("a merge that is spread over calls gives no rank more than one message each way in one") {
  const auto most = [](int num_ranks, double call_s) {
    ranks all(num_ranks, {}, "knowledge_gradient", 1, {.at_once_s = 1e-3});
    for (int i = 0; i < 300; ++i)
      all.call(key_of(collective::all_reduce, 12), [&](int) { return call_s; });
    REQUIRE(all.steps()[0].merges() >= 2);
    return all.most_messages_in_a_call();
  };
  for (int num_ranks = 2; num_ranks <= 40; ++num_ranks) {
    CAPTURE(num_ranks);
    CHECK(most(num_ranks, 20e-6) == 1);  // a merge within one call would be dearer than this
  }
  CHECK(most(16, 1.0) == 6);  // children of rank 0
}

TEST_CASE(
    "the first merge takes one call where that takes no longer than the call is expected to, or "
    "four where all wait for all") {
  const auto most = [](double at_once_s, collective op = collective::broadcast) {
    ranks all(16, {}, "knowledge_gradient", 1, {.at_once_s = at_once_s});
    timed_call c;
    for (int i = 0; i < 3; ++i)
      c = all.call(key_of(op, 12), [](int arm) { return arm_seconds(arm); });
    return std::pair(all.most_messages_in_a_call(), all.steps()[0].merges());
  };
  // some_arms() have predictions of 123 us and more.
  CHECK(most(50e-6) == std::pair(6, std::int64_t(1)));
  CHECK(most(300e-6) == std::pair(1, std::int64_t(0)));
  CHECK(most(300e-6, collective::all_reduce) == std::pair(6, std::int64_t(1)));
  CHECK(most(1e-3, collective::all_reduce) == std::pair(1, std::int64_t(0)));
}

TEST_CASE("where much time passes per call merges take one call, whatever is predicted") {
  const auto merges_in_ten_calls = [](double passed_s) {
    ranks all(8, {}, "knowledge_gradient", 1, {.at_once_s = 1e-3}, passed_s);
    for (int i = 0; i < 10; ++i)
      all.call(key_of(collective::broadcast, 16), [](int arm) { return 300 * arm_seconds(arm); });
    return all.steps()[0].merges();
  };
  CHECK(merges_in_ten_calls(0) <= 1);  // spread over calls, because the predictions are short
  CHECK(merges_in_ten_calls(20e-3) <= 1);
  CHECK(merges_in_ten_calls(60e-3) >= 2);
}

TEST_CASE("a call that was not recorded is no sample") {
  ranks all(3, {}, "native", 1);
  std::vector<lockstep>& steps = all.steps();
  int recorded = 0, timed = 0;
  for (int i = 0; i < 200; ++i) {
    all.start();
    // The harness records on all ranks; a negative time means that no rank recorded.
    const bool fails = i % 3 == 0;
    const timed_call c =
        all.choose(key_of(collective::all_reduce, 4), [&](int) { return fails ? -1.0 : 1e-3; });
    timed += c.timed;
    recorded += c.timed && !fails;
  }
  const auto records = steps[0].records(0);
  REQUIRE(recorded < timed);
  REQUIRE(records[0].sums.samples > 0);
  REQUIRE(records[0].sums.samples <= recorded);
  REQUIRE(records[0].sums.mean_s() >= 1e-3);
}

TEST_CASE("a call in which others are nested has its own time, whatever samples were dropped") {
  struct always_timed final : policy {
    std::vector<arm_prior> priors = some_arms(2);
    void learn(const arm_book&) override {}
    epoch_plan plan(const planning_input&) override {
      return {.incumbent = 1, .length = 500, .timed_stride = 1};
    }
    std::span<const arm_prior> arms() const override { return priors; }
    std::vector<double> probabilities() const override { return {0, 1}; }
    std::optional<time_estimate> posterior(int) const override { return std::nullopt; }
    std::string reason() const override { return "always timed"; }
  };
  lockstep ls({});
  const auto begin = [&](int size_class) {
    const int context = ls.next_call(key_of(collective::broadcast, size_class)).context;
    ls.adopt(context, ls.lead(context, std::make_unique<always_timed>()));
    return context;
  };
  ls.begin_call();
  const int outer = begin(3), inner = begin(4);
  const auto make_inner_calls = [&](int count) {
    for (int i = 0; i < count; ++i) ls.record(ls.next_call(key_of(collective::broadcast, 4)), 1e-3);
  };
  make_inner_calls(6);
  const timed_call call = ls.next_call(key_of(collective::broadcast, 3));
  REQUIRE(call.timed);
  make_inner_calls(20);
  ls.record(call, 1);
  ls.conclude_alone();
  const sample_sums of_outer = ls.records(outer).at(0).sums,
                    of_inner = ls.records(inner).at(0).sums;
  CHECK(of_outer.samples == 1);
  CHECK(of_outer.sum_s == Approx(1));
  CHECK(of_inner.samples > 6);
  CHECK(of_inner.sum_s == Approx(1e-3 * double(of_inner.samples)));
}

TEST_CASE("without a policy a context is native and untimed for good") {
  lockstep ls({});
  const context_key key = key_of(collective::broadcast, 4);
  const timed_call first = ls.next_call(key);
  REQUIRE(first.needs_first_plan);
  ls.adopt(first.context, ls.lead(first.context, nullptr));
  for (int i = 0; i < 1000; ++i) {
    const timed_call c = ls.next_call(key);
    REQUIRE(c.arm == native_arm);
    REQUIRE(!c.timed);
    REQUIRE(!c.needs_first_plan);
  }
  REQUIRE(ls.policy_of(first.context) == nullptr);
}

TEST_CASE("a policy that runs out of memory leaves its context with the plan it has") {
  const int questions = GENERATE(1, 2, 3, 4, 9);  // plan, learn, plan, ...
  CAPTURE(questions);
  ranks all(3, {.max_contexts = 8}, "thompson", 1);
  const context_key lost = key_of(collective::broadcast, 3);
  const context_key kept = key_of(collective::all_reduce, 3);
  all.forget_after(questions);
  all.call(lost, [](int a) { return arm_seconds(a); });
  REQUIRE(all.steps()[0].policy_of(0) != nullptr);
  all.forget_after(1'000'000);
  for (int i = 0; i < 2000; ++i)
    all.call(i % 2 ? lost : kept, [](int a) { return arm_seconds(a); });
  CHECK(all.mismatches() == 0);
  CHECK(all.steps()[0].policy_of(0) == nullptr);
  CHECK(all.steps()[0].policy_of(1) != nullptr);
  CHECK(all.steps()[0].merges() > 4);
}

TEST_CASE("a first plan for which there is no memory can be made without a policy") {
  lockstep leader({.max_contexts = 8});
  const context_key key = key_of(collective::broadcast, 3);
  leader.begin_call();
  const timed_call first = leader.next_call(key);
  REQUIRE(first.needs_first_plan);
  CHECK_THROWS_AS(leader.lead(first.context, std::make_unique<forgetful>(0, some_arms(9))),
                  std::bad_alloc);
  CHECK(leader.policy_of(first.context) == nullptr);
  leader.adopt(first.context, leader.lead(first.context, nullptr));
  const timed_call again = leader.next_call(key);
  CHECK(!again.needs_first_plan);
  CHECK(again.arm == native_arm);
}

TEST_CASE("a rank that missed a call is noticed in the next merge") {
  // Each rank continues until it has to wait for the other rank, as in MPI.
  const int skipped_at = GENERATE(0, 1, 7, 40);
  CAPTURE(skipped_at);
  // The program alternates between two sizes.
  const std::array keys{key_of(collective::all_reduce, 12), key_of(collective::all_reduce, 14)};
  std::array<lockstep, 2> steps{lockstep({}, 0, 2), lockstep({}, 1, 2)};
  merge_mail mail;
  std::array<int, 2> calls{}, adopted{}, noticed{};
  int posted_at = 0;
  std::array<bool, 2> in_call{};
  std::vector<plan_message> plans;
  for (int round = 0; round < 1000 && noticed[1] == 0; ++round) {
    const std::size_t r = std::size_t(round % 2);
    lockstep& ls = steps[r];
    for (;;) {
      if (!std::exchange(in_call[r], true)) {
        if (r == 1 && calls[r] == skipped_at) ++calls[r];  // a call that bypasses railpass
        ++calls[r];
        ls.begin_call();
      }
      if (r == 0 && ls.due() == merge_step::post) posted_at = calls[0];
      if (!mail.make_steps(int(r), ls, [&](merge_outcome outcome) {
            if (outcome == merge_outcome::mismatch)
              ++noticed[r];
            else if (r == 0)  // by the first merge before which the ranks' calls differ in number
              CHECK((posted_at <= skipped_at + 1 || (posted_at - skipped_at) % 2 == 1));
          }))
        break;
      const context_key& key = keys[std::size_t(calls[r] % 2)];
      timed_call c = ls.next_call(key);
      if (c.needs_first_plan) {
        if (r == 0)
          plans.push_back(
              ls.lead(c.context, make_policy("knowledge_gradient", {.priors = some_arms(5)})));
        if (plans.size() <= std::size_t(adopted[r])) plans.push_back({});
        ls.adopt(c.context, plans.at(std::size_t(adopted[r]++)));
        c = ls.next_call(key);
      }
      if (c.timed) ls.record(c, arm_seconds(c.arm));
      in_call[r] = false;
      if (calls[r] > 200) break;
    }
  }
  REQUIRE(noticed == std::array{1, 1});
}

TEST_CASE("ranks that make different calls notice it in the same merge and stay native") {
  const std::uint64_t seed = GENERATE(1U, 2U, 3U);
  const int fault = GENERATE(0, 1, 2, 3);
  CAPTURE(seed, fault);
  random_stream random(seed);
  ranks all(3, {}, "knowledge_gradient", seed);
  std::vector<lockstep>& steps = all.steps();
  const context_key usual = key_of(collective::all_reduce, 12);
  const auto seconds = [](int arm) { return arm_seconds(arm); };
  const int before = random.below(200);
  for (int i = 0; i < before; ++i) all.call(usual, seconds);
  REQUIRE(all.mismatches() == 0);

  // The fault, on rank 1.
  plan_message foreign{};
  all.start();
  if (fault == 0) {  // it calls railpass once too often
    (void)all.choose(usual, seconds);
    steps[1].next_call(usual);
  } else if (fault == 1) {  // it has another context of its own
    (void)all.choose(usual, seconds);
    steps[1].next_call(key_of(collective::all_reduce, 13));
  } else if (fault == 2) {  // it skips a tuned call
    for (const std::size_t r : {std::size_t(0), std::size_t(2)}) {
      timed_call c = steps[r].next_call(usual);
      if (c.needs_first_plan) {
        if (r == 0) foreign = steps[0].lead(c.context, make_policy("native", {some_arms(3)}));
        steps[r].adopt(c.context, foreign);
        steps[r].next_call(usual);
      }
    }
  } else {  // the first plan belongs to another context
    const context_key mine = key_of(collective::all_reduce, 5),
                      other = key_of(collective::all_reduce, 6);
    for (std::size_t r = 0; r < steps.size(); ++r) {
      const timed_call c = steps[r].next_call(r == 1 ? other : mine);
      REQUIRE(c.needs_first_plan);
      if (r == 0) foreign = steps[0].lead(c.context, make_policy("native", {some_arms(3)}));
      steps[r].adopt(c.context, foreign);
      steps[r].next_call(r == 1 ? other : mine);
    }
  }

  // Arms may differ from here until the next synchronisation; calls continue.
  int calls = 0;
  while (all.mismatches() == 0 && calls < 100000) {
    all.start();
    if (all.mismatches() > 0) break;
    for (lockstep& ls : steps) {
      const timed_call c = ls.next_call(usual);
      if (c.needs_first_plan) {
        ls.adopt(c.context, foreign);
        continue;
      }
      if (c.timed) ls.record(c, 1e-4);
    }
    ++calls;
  }
  REQUIRE(all.mismatches() == 3);
  for (lockstep& ls : steps) {
    REQUIRE(ls.native_for_good());
    REQUIRE(ls.outstanding() == merge_step::none);
    REQUIRE(ls.next_call(usual).arm == native_arm);
    for (int i = 0; i < 100000; ++i) REQUIRE(!ls.begin_call());
  }
}

TEST_CASE("all ranks stay native from the same merge on once one of them may have a GPU") {
  ranks all(3, {}, "knowledge_gradient", 1);
  const context_key usual = key_of(collective::all_reduce, 12);
  const auto seconds = [](int arm) { return arm_seconds(arm); };
  for (int i = 0; i < 100; ++i) all.call(usual, seconds);
  REQUIRE_FALSE(all.steps()[0].device_found());
  all.steps()[1].find_device();
  for (int i = 0; i < 100000 && all.mismatches() == 0; ++i) all.call(usual, seconds);
  REQUIRE(all.mismatches() == 3);
  for (lockstep& ls : all.steps()) {
    CHECK(ls.native_for_good());
    CHECK(ls.device_found());
  }
}

TEST_CASE("merges become rare without bound, and cheap calls merge less than dear ones") {
  const auto merges_at = [](double call_s, double merge_s, std::vector<int> at) {
    ranks all(2, {}, "knowledge_gradient", 5, {.spread_s = merge_s});
    std::vector<std::int64_t> result;
    for (int i = 1; i <= at.back(); ++i) {
      all.call(key_of(collective::all_reduce, 12),
               [&](int arm) { return arm_seconds(arm, call_s / 1e-4); });
      if (std::find(at.begin(), at.end(), i) != at.end()) result.push_back(all.steps()[0].merges());
    }
    return result;
  };
  const auto dear = merges_at(1e-2, 1e-5, {1000, 10000, 100000});
  INFO(dear[0] << " " << dear[1] << " " << dear[2]);
  REQUIRE(dear[0] >= 20);
  REQUIRE(dear[0] <= 120);
  // Ten times the calls need far less than ten times the synchronisations.
  REQUIRE(dear[1] - dear[0] <= 4 * dear[0]);
  REQUIRE(dear[2] - dear[1] <= dear[1]);

  const auto cheap = merges_at(1e-6, 1e-5, {1000, 10000});
  INFO(cheap[0] << " " << cheap[1]);
  REQUIRE(cheap[0] >= 1);
  REQUIRE(cheap[0] <= 6);
  // 10 us each; 1 % of the 10 to 16 ms of these calls, plus a few free ones.
  REQUIRE(cheap[1] <= 21);
}

namespace {

/// Counts the synchronisations of a stream of calls of 1 us each.
struct stream {
  std::string policy = "native";
  int calls = 20000;
  double call_every_s = 1e-6;
  double merge_s = 100e-6, expected_merge_s = merge_s;

  std::int64_t merges() const {
    const context_key key = key_of(collective::broadcast, 3);
    lockstep ls({}, 0, 8);
    ls.expect({.spread_s = expected_merge_s, .at_once_s = 1});
    double now_s = 0;
    for (int i = 0; i < calls; ++i, now_s += call_every_s) {
      if (ls.begin_call()) {
        ls.begin_steps(now_s);
        double added_s = 0;
        while (ls.due() != merge_step::none)
          if (ls.step_alone()) added_s += merge_s;
        ls.end_steps(now_s + added_s / 2);  // the time of one rank
        now_s += added_s;
      }
      timed_call c = ls.next_call(key);
      if (c.needs_first_plan) {
        ls.adopt(c.context, ls.lead(c.context, make_policy(policy, {.priors = some_arms(9)})));
        c = ls.next_call(key);
      }
      if (c.timed) ls.record(c, 1e-6 * (1 + c.arm));
    }
    return ls.merges();
  }
};

}  // namespace

TEST_CASE("merges that turn out dearer than expected are soon as rare as if that had been known") {
  // 1 % of the 20 ms, plus four free ones.
  CHECK(stream{}.merges() <= 6);
  CHECK(stream{.expected_merge_s = 2.5e-6}.merges() <= 7);
}

TEST_CASE("calls of several ranks that overlap leave merges 1 % of what the clock says they took") {
  const auto merges = [](double call_every_s) {
    return stream{.policy = "knowledge_gradient",
                  .calls = 50000,
                  .call_every_s = call_every_s,
                  .merge_s = 10e-6}
        .merges();
  };
  const auto one_by_one = merges(1e-6);
  CHECK(one_by_one > 40);
  CHECK(merges(0.5e-6) <= 5 + 25);
  CHECK(merges(0.125e-6) <= 5 + 6);
  // Computation between calls does not count as calls.
  CHECK(merges(1e-4) <= one_by_one + 1);
}

TEST_CASE("where ranks share cores a merge costs what the calls beside it take longer") {
  constexpr double call_s = 200e-6, longer = 0.15;
  const context_key key = key_of(GENERATE(collective::all_reduce, collective::all_to_allv), 10);
  random_stream random(GENERATE(range(1U, 9U)));
  lockstep ls({}, 0, 8);
  ls.expect({.spread_s = 8e-6, .at_once_s = 1});
  double now_s = 0, cost_s = 0;
  for (int i = 0; i < 30000; ++i) {
    if (ls.begin_call()) {
      ls.begin_steps(now_s);
      while (ls.due() != merge_step::none) ls.step_alone();
      ls.end_steps(now_s + 1e-6);  // as measured by a rank's own clock
    }
    timed_call c = ls.next_call(key);
    if (c.needs_first_plan) {
      ls.adopt(c.context,
               ls.lead(c.context, make_policy("knowledge_gradient", {.priors = some_arms(1)})));
      c = ls.next_call(key);
    }
    const double more = ls.outstanding() == merge_step::none ? 0 : longer;
    const double seconds = call_s * (1 + more) * std::exp(0.2 * random.normal() - 0.02);
    cost_s += call_s * more;
    now_s += seconds;
    if (c.timed) ls.record(c, seconds, {}, true);
  }
  REQUIRE(ls.merges() > 20);
  CHECK(ls.merges_cost_s() > 0.33 * cost_s);
  CHECK(ls.merges_cost_s() < 1.3 * cost_s);
  CHECK(cost_s < 0.015 * now_s);
}

TEST_CASE("ranks ask for their cores in the first waited calls, and then in one of eight") {
  const auto op = GENERATE(collective::all_reduce, collective::all_to_allv, collective::broadcast);
  const bool waited = op != collective::broadcast;
  const context_key key = key_of(op, 10);
  lockstep ls({});
  int timed = 0, watched = 0;
  for (int i = 0; i < 20000; ++i) {
    if (ls.begin_call())
      while (ls.due() != merge_step::none) ls.step_alone();
    timed_call c = ls.next_call(key);
    if (c.needs_first_plan) {
      ls.adopt(c.context,
               ls.lead(c.context, make_policy("knowledge_gradient", {.priors = some_arms(9)})));
      c = ls.next_call(key);
    }
    REQUIRE((c.timed || !c.watches_core));
    timed += c.timed;
    watched += c.watches_core;
    if (timed == 32) CHECK(watched == (waited ? 32 : 0));
    if (c.timed) ls.record(c, 1e-4);
  }
  REQUIRE(timed > 200);
  CHECK(watched == (waited ? 32 + (timed - 32 + 7) / 8 : 0));
}

TEST_CASE("calls of empty blocks do not say whether cores are shared where others can") {
  lockstep ls({});
  int watched = 0;
  for (int i = 0; i < 2000; ++i) {
    for (const collective op : {collective::all_reduce, collective::all_to_allv}) {
      if (ls.begin_call())
        while (ls.due() != merge_step::none) ls.step_alone();
      timed_call c = ls.next_call(key_of(op, 10));
      if (c.needs_first_plan) {
        ls.adopt(c.context, ls.lead(c.context, make_policy("native", {.priors = some_arms(2)})));
        c = ls.next_call(key_of(op, 10));
      }
      watched += c.watches_core;
      if (op == collective::all_to_allv) CHECK_FALSE(c.watches_core);
      if (c.timed) ls.record(c, 1e-4);
    }
  }
  CHECK(watched > 32);
}

TEST_CASE("contexts beyond the limit run native and cost no memory") {
  ranks all(2, {.max_contexts = 5}, "knowledge_gradient", 1);
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < 2000; ++i) {
      context_key key = key_of(i % 2 == 0 ? collective::broadcast : collective::all_reduce, i % 62);
      key.policy = std::uint8_t(i / 62 % 7);
      const timed_call c = all.call(key, [](int arm) { return arm_seconds(arm); });
      if (c.context < 0) {
        REQUIRE(c.arm == native_arm);
        REQUIRE(!c.timed);
      }
      REQUIRE(all.steps()[0].num_contexts() <= 5);
    }
  REQUIRE(all.steps()[0].num_contexts() == 5);
  REQUIRE(all.mismatches() == 0);
}

TEST_CASE("many contexts share one merge") {
  const int contexts = 100;
  ranks all(2, {.max_contexts = 256}, "knowledge_gradient", 3);
  random_stream random(9);
  std::vector<int> best_calls(contexts);
  const int calls = 40000;
  for (int i = 0; i < calls; ++i) {
    const int which = random.below(contexts);
    context_key key = key_of(collective::all_reduce, which % 50);
    key.policy = std::uint8_t(which / 50);
    const timed_call c = all.call(key, [](int arm) { return arm_seconds(arm, 10); });
    if (i > calls / 2 && c.arm == 4) ++best_calls[std::size_t(which)];
  }
  REQUIRE(all.mismatches() == 0);
  REQUIRE(all.steps()[0].num_contexts() == contexts);
  REQUIRE(all.longest_message() <= std::size_t(merge_reply::max_words));
  int settled = 0;
  for (const int n : best_calls) settled += n > 100;  // of about 200
  REQUIRE(settled > 80);
}

TEST_CASE("a context that begins while merges are rare does not wait for the next of them") {
  for (const int num_ranks : {1, 4, 7}) {
    CAPTURE(num_ranks);
    ranks all(num_ranks, {}, "knowledge_gradient", 4);
    const auto call = [&](int size_class) {
      return all.call(key_of(collective::all_reduce, size_class),
                      [](int arm) { return arm_seconds(arm); });
    };
    for (int i = 0; i < 20000; ++i) call(3);
    const lockstep& leader = all.steps()[0];
    std::int64_t merges = leader.merges();
    for (int i = 0; i < 100; ++i) call(3);
    REQUIRE(leader.merges() - merges <= 1);  // rare
    // A new context in between, used equally often.
    merges = leader.merges();
    bool tried = false;
    for (int i = 0; i < 12; ++i) {
      call(3);
      tried = call(9).arm != native_arm || tried;
    }
    CHECK(leader.merges() - merges >= 2);
    CHECK(tried);
    CHECK(all.mismatches() == 0);
  }
}

TEST_CASE(
    "a context of long calls pays for its merge where short ones have not paid for the last") {
  ranks all(4, {}, "pass", 4, {.spread_s = 1e-4});  // always wants the next plan
  const auto call = [&](int size_class, double scale) {
    return all.call(key_of(collective::all_reduce, size_class),
                    [&](int arm) { return arm_seconds(arm, scale); });
  };
  for (int i = 0; i < 20000; ++i) call(3, 1e-2);
  const lockstep& leader = all.steps()[0];
  for (const std::int64_t merges = leader.merges(); leader.merges() == merges;) call(3, 1e-2);
  // The next synchronisation is thousands of short calls away, and the program makes no short calls
  // any more.
  const std::int64_t merges = leader.merges();
  for (int i = 0; i < 400; ++i) call(20, 1);
  CHECK(leader.merges() - merges >= 2);
  CHECK(all.mismatches() == 0);
}

TEST_CASE("a list with a period starts again, one without runs once") {
  struct scripted final : policy {
    epoch_plan next;
    std::vector<arm_prior> priors = some_arms(4);
    void learn(const arm_book&) override {}
    epoch_plan plan(const planning_input&) override { return next; }
    std::span<const arm_prior> arms() const override { return priors; }
    std::vector<double> probabilities() const override { return {1, 0, 0, 0}; }
    std::optional<time_estimate> posterior(int) const override { return std::nullopt; }
    std::string reason() const override { return "scripted"; }
  };
  for (const int period : {0, 5}) {
    auto scripted_policy = std::make_unique<scripted>();
    scripted_policy->next = {.incumbent = 1,
                             .explore = {{0, 2}, {3, 3}},
                             .length = 8,
                             .timed_stride = 0,
                             .period = period};
    lockstep ls({});
    const context_key key = key_of(collective::broadcast, 3);
    const timed_call first = ls.next_call(key);
    REQUIRE(first.needs_first_plan);
    ls.adopt(first.context, ls.lead(first.context, std::move(scripted_policy)));
    std::vector<int> arms;
    for (int i = 0; i < 10; ++i) arms.push_back(ls.next_call(key).arm);
    if (period == 0) REQUIRE(arms == std::vector{2, 1, 1, 3, 1, 1, 1, 1, 1, 1});
    if (period == 5) REQUIRE(arms == std::vector{2, 1, 1, 3, 1, 2, 1, 1, 3, 1});
  }
}

TEST_CASE("a merge's samples of the incumbent are of all calls since the last one") {
  // The plan asks for many more calls than there is room for.
  struct listener final : policy {
    std::vector<std::vector<observation>>* heard = nullptr;
    std::vector<arm_prior> priors = some_arms(4);
    void learn(const arm_book& book) override {
      heard->emplace_back(book.merged().begin(), book.merged().end());
    }
    epoch_plan plan(const planning_input&) override {
      return {.incumbent = 1, .length = 500, .timed_stride = 1};
    }
    std::span<const arm_prior> arms() const override { return priors; }
    std::vector<double> probabilities() const override { return {0, 1, 0, 0}; }
    std::optional<time_estimate> posterior(int) const override { return std::nullopt; }
    std::string reason() const override { return "listener"; }
  };
  std::vector<std::vector<observation>> heard;
  auto policy = std::make_unique<listener>();
  policy->heard = &heard;
  lockstep ls({});
  const context_key key = key_of(collective::broadcast, 3);
  std::vector<int> merged_at{0};
  int timed = 0;
  for (int i = 0; i < 6000; ++i) {
    if (ls.begin_call())
      while (ls.due() != merge_step::none) ls.step_alone();
    if (heard.size() >= merged_at.size()) merged_at.push_back(i);
    timed_call c = ls.next_call(key);
    if (c.needs_first_plan) {
      ls.adopt(c.context, ls.lead(c.context, std::move(policy)));
      c = ls.next_call(key);
    }
    timed += c.timed;
    if (c.timed) ls.record(c, 1 + i);  // the number of the call
  }
  REQUIRE(heard.size() >= 6);
  CHECK(timed < 800);
  for (std::size_t m = 3; m < heard.size(); ++m) {
    const int first = merged_at[m], calls = merged_at[m + 1] - first;
    REQUIRE(calls > 300);
    REQUIRE(heard[m].size() >= 8);
    REQUIRE(heard[m].size() <= 16);
    double before = first;
    for (const observation& o : heard[m]) {
      CHECK(o.seconds - before < 0.3 * calls);
      before = o.seconds;
    }
    CHECK(first + calls - before < 0.3 * calls);
  }
}

TEST_CASE("a settled incumbent is timed about once per stride, not exactly") {
  lockstep ls({});
  const context_key key = key_of(collective::broadcast, 3);
  const timed_call first = ls.next_call(key);
  auto chosen = make_policy("native", {.priors = some_arms(3)});
  const arm_book nothing;
  chosen->learn(nothing);
  ls.adopt(first.context, ls.lead(first.context, std::move(chosen)));
  std::set<int> distances;
  int last = 0, timed = 0;
  for (int i = 0; i < 48; ++i)
    if (ls.next_call(key).timed) {
      distances.insert(i - last);
      last = i;
      ++timed;
    }
  REQUIRE(timed >= 8);
  REQUIRE(timed <= 24);
  REQUIRE(distances.size() > 2);
}

// SPDX-License-Identifier: BSL-1.0
//
// The lockstep of thousands of ranks, each at its own pace: a rank waits only where MPI would, for
// a merge that others have not posted and for a plan that rank 0 has not made.
#include "railpass/select/lockstep/lockstep.hpp"
#include "railpass/select/policies.hpp"
#include "railpass/select/policy/random.hpp"
#include "support/catch.hpp"
#include "support/merge_mail.hpp"

#include <map>
#include <vector>

using namespace railpass;
using namespace railpass::select;

namespace {

constexpr std::size_t num_ranks = 4096;

context_key key_of_call(int call) {
  return {.op = call % 3 == 0 ? collective::all_reduce : collective::broadcast,
          .size_class = std::uint8_t(10 + call % 2)};
}

class ranks {
 public:
  /// Rank `corrupted` receives a wrong `word` in the message with the first plan of context 1.
  ranks(int calls, std::uint64_t seed, std::size_t corrupted = num_ranks, std::size_t word = 0)
      : calls_(calls),
        random_(seed),
        corrupted_(corrupted),
        wrong_word_(word),
        arms_(std::size_t(calls), -1) {
    members_.reserve(num_ranks);
    for (std::size_t r = 0; r < num_ranks; ++r)
      members_.push_back({lockstep({.max_contexts = 8}, int(r), int(num_ranks))});
    members_[0].steps.expect({.spread_s = 1e-6});
  }

  /// Lets ranks proceed in random order until all calls are made. False if no rank can proceed.
  bool run() {
    std::vector<std::size_t> left(num_ranks);
    for (std::size_t r = 0; r < num_ranks; ++r) left[r] = r;
    while (!left.empty()) {
      random_.shuffle(left);
      const std::int64_t steps_before = mail_.steps();
      bool moved = false;
      for (const std::size_t r : left)
        // Some run ahead as far as they can, others make one call.
        for (int ahead = random_.below(4) == 0 ? 50 : 1; ahead > 0 && step(r); --ahead)
          moved = true;
      if (!moved && mail_.steps() == steps_before) return false;
      std::erase_if(left, [&](std::size_t r) { return members_[r].made == calls_; });
    }
    return true;
  }

  int different_arms() const { return different_arms_; }
  int farthest_apart() const { return farthest_apart_; }
  /// Calls in which the ranks learnt that they differ.
  const std::map<int, std::size_t>& mismatches() const { return mismatches_; }
  const lockstep& of(std::size_t r) const { return members_[r].steps; }
  int arm(int call) const { return arms_[std::size_t(call)]; }

 private:
  struct member {
    lockstep steps;
    int made = 0;
    bool in_call = false;
  };

  /// One call of one rank, or as much of it as it can; false if it has to wait or has made all.
  bool step(std::size_t r) {
    member& m = members_[r];
    if (m.made == calls_) return false;
    if (!m.in_call) {
      m.steps.begin_call();
      m.in_call = true;
    }
    if (!mail_.make_steps(int(r), m.steps, [&](merge_outcome outcome) {
          if (outcome == merge_outcome::mismatch) ++mismatches_[m.made];
        }))
      return false;
    const context_key key = key_of_call(m.made);
    timed_call c = m.steps.next_call(key);
    if (c.needs_first_plan) {
      if (r == 0) first_plans_[c.context] = m.steps.lead(c.context, made());
      const auto plan = first_plans_.find(c.context);
      if (plan == first_plans_.end()) return false;
      plan_message message = plan->second;
      if (r == corrupted_ && c.context == 1) message[wrong_word_] ^= 1;
      m.steps.adopt(c.context, message);
      c = m.steps.next_call(key);
    }
    if (c.timed) m.steps.record(c, 1e-4 * (1 + c.arm) * (1 + random_.uniform()));
    int& arm = arms_[std::size_t(m.made)];
    if (arm < 0 && r != corrupted_) arm = c.arm;
    if (r != corrupted_ && c.arm != arm) ++different_arms_;
    ++m.made;
    m.in_call = false;
    farthest_apart_ = std::max(farthest_apart_, m.made - members_[0].made);
    return true;
  }

  static std::unique_ptr<policy> made() {
    std::vector<arm_prior> priors{{.arm = 0, .native = true, .measured_only = true}};
    for (int a = 1; a < 6; ++a)
      priors.push_back({.arm = a, .log_seconds = -9 + 0.2 * a, .family = a});
    return make_policy("knowledge_gradient", {.priors = priors});
  }

  int calls_;
  random_stream random_;
  std::size_t corrupted_, wrong_word_;
  std::vector<member> members_;
  test::merge_mail mail_;
  std::map<int, plan_message> first_plans_;
  std::vector<int> arms_;  // by call
  std::map<int, std::size_t> mismatches_;
  int different_arms_ = 0, farthest_apart_ = 0;
};

}  // namespace

TEST_CASE("4096 ranks at their own pace take the same arms and none waits for ever") {
  const std::uint64_t seed = GENERATE(1U, 2U);
  CAPTURE(seed);
  ranks all(200, seed);
  REQUIRE(all.run());
  CHECK(all.different_arms() == 0);
  CHECK(all.mismatches().empty());
  CHECK(all.of(0).merges() > 5);
  CHECK(all.farthest_apart() >= 2);
}

TEST_CASE("one rank with a wrong plan is noticed by all in the same call, and all stay native") {
  constexpr std::size_t plan = first_plan_words::header;
  const std::size_t wrong_word = GENERATE(std::size_t{first_plan_words::key},
                                          plan + plan_words::context, plan + plan_words::incumbent);
  CAPTURE(wrong_word);
  ranks all(200, 3, 1234, wrong_word);
  REQUIRE(all.run());
  REQUIRE(all.mismatches().size() == 1);
  const auto [call, count] = *all.mismatches().begin();
  CHECK(count == num_ranks);
  CHECK(call < 60);  // a merge takes 24 calls, and one may have begun before
  for (std::size_t r = 0; r < num_ranks; ++r) REQUIRE(all.of(r).native_for_good());
  for (int later = call; later < 200; ++later) CHECK(all.arm(later) == native_arm);
}

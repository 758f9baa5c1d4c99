// SPDX-License-Identifier: BSL-1.0
//
// The policies that do what other autotuners do: each follows its rule, the good and the bad of it.
#include "railpass/select/policies.hpp"
#include "railpass/select/policies/peers/trial_policy.hpp"
#include "support/catch.hpp"

#include <cmath>
#include <functional>
#include <map>
#include <set>

using namespace railpass::select;

namespace {

/// Two algorithms with segment sizes 2^10 .. 2^13, two without, and native.
std::vector<arm_prior> grid() {
  std::vector<arm_prior> priors{{.arm = 0, .family = 0, .native = true, .measured_only = true}};
  for (int family = 1; family <= 2; ++family)
    for (int segment = 10; segment <= 13; ++segment)
      priors.push_back({.arm = int(priors.size()),
                        .log_seconds = -8,
                        .family = family,
                        .log2_segment = double(segment)});
  for (int family = 3; family <= 4; ++family)
    priors.push_back({.arm = int(priors.size()), .log_seconds = -8, .family = family});
  return priors;
}

/// Plays a policy's plans without delay; every call is timed.
class game {
 public:
  using times = std::function<double(int arm, int trial)>;
  game(const char* name, times seconds, std::vector<arm_prior> priors = grid())
      : policy_(make_policy(name, {.priors = std::move(priors)})), seconds_(std::move(seconds)) {}

  void calls(int count) {
    while (count > 0) {
      const epoch_plan p = policy_->plan({.calls = calls_, .merge_cost_s = 1e-6});
      std::vector<observation> merged;
      std::size_t next = 0;
      for (int i = 0; i < std::min(p.length, 64); ++i, --count, ++calls_) {
        const bool explores = next < p.explore.size() && p.explore[next].position == i;
        incumbent_ = p.incumbent;
        const int arm = explores ? p.explore[next++].arm : p.incumbent;
        merged.push_back({arm, seconds_(arm, trials_[arm]++)});
      }
      book_.add(merged, calls_);
      policy_->learn(book_);
    }
  }
  int trials(int arm) { return trials_[arm]; }
  int incumbent() const { return incumbent_; }
  void now(times seconds) { seconds_ = std::move(seconds); }
  std::int64_t made() const { return calls_; }

 private:
  arm_book book_;
  std::unique_ptr<policy> policy_;
  times seconds_;
  std::map<int, int> trials_;
  std::int64_t calls_ = 0;
  int incumbent_ = 0;
};

/// Arm 6 (algorithm 2, 2^11) is the best of grid(), and attributes do not interact.
double separable(int arm, int) {
  const std::vector<arm_prior> all = grid();
  const arm_prior& a = all[std::size_t(arm)];
  const double algorithm = a.family == 2 ? 1 : 2;
  return 1e-4 * algorithm * (a.log2_segment == 24 ? 3 : 1 + 0.2 * std::abs(a.log2_segment - 11));
}
constexpr int best_separable = 6;

}  // namespace

TEST_CASE("ADCL's score leaves outliers out unless they are a fifth") {
  std::vector<double> s(29, 1.0);
  s.push_back(100);
  CHECK(adcl_score(s) == Approx(1));
  for (int i = 0; i < 10; ++i) s.push_back(100);
  CHECK(adcl_score(s) == Approx((29 + 1100) / 40.0));
}

TEST_CASE("brute force tries every arm 30 times and keeps the fastest in spite of outliers") {
  game g("adcl_brute_force", [](int arm, int trial) {
    return separable(arm, trial) * (arm == best_separable && trial == 7 ? 50 : 1);
  });
  g.calls(600);
  for (int arm = 0; arm < 11; ++arm) CHECK(g.trials(arm) >= 30);
  CHECK(g.trials(10) == 30);
  CHECK(g.incumbent() == best_separable);
  g.now([](int arm, int) { return arm == best_separable ? 1.0 : 1e-4; });
  g.calls(3000);
  CHECK(g.incumbent() == best_separable);  // it never looks again
}

TEST_CASE("the attribute search finds the best arm with fewer trials where nothing interacts") {
  game g("adcl_attributes", separable);
  g.calls(600);
  CHECK(g.incumbent() == best_separable);
  int tried = 0;
  for (int arm = 0; arm < 11; ++arm) tried += g.trials(arm) > 0;
  CHECK(tried < 11);
}

TEST_CASE("the factorial design tries the corners, then only what matters") {
  // Only the algorithm matters.
  std::vector<arm_prior> priors{{.arm = 0, .family = 0, .native = true, .measured_only = true}};
  for (int family = 0; family <= 3; ++family)
    for (int segment = 10; segment <= 14; ++segment)
      if (family > 0 || segment < 14)
        priors.push_back({.arm = int(priors.size()),
                          .log_seconds = -8,
                          .family = family,
                          .log2_segment = double(segment)});
  priors[0].log2_segment = 14;
  const std::vector<arm_prior> all = priors;
  game g(
      "factorial",
      [&](int arm, int) {
        const arm_prior& a = all[std::size_t(arm)];
        return 1e-4 * (5 - a.family) + 1e-7 * a.log2_segment;
      },
      priors);
  g.calls(600);
  CHECK(all[std::size_t(g.incumbent())].family == 3);
  CHECK(all[std::size_t(g.incumbent())].log2_segment == 10);
  int tried = 0;
  for (const arm_prior& a : all) {
    const bool corner =
        (a.family == 0 || a.family == 3) && (a.log2_segment == 10 || a.log2_segment == 14);
    tried += g.trials(a.arm) > 0;
    if (g.trials(a.arm) > 0 && !corner) CHECK(a.log2_segment == 10);
  }
  CHECK(tried == 6);
}

TEST_CASE("STAR-MPI gives way to the second arm when the first slows down, and to no other") {
  game g("star_mpi", separable);
  g.calls(100);
  CHECK(g.incumbent() == best_separable);
  CHECK(g.trials(0) <= 3);
  // The third best becomes the very best, the first three times slower.
  g.now([](int arm, int trial) {
    return arm == best_separable ? 3e-4 : arm == 7 ? 1e-6 : separable(arm, trial);
  });
  g.calls(2000);
  CHECK(g.incumbent() == 5);
  CHECK(g.trials(7) == 2);
}

TEST_CASE("explore then commit has one sample each, and an outlier misleads it for good") {
  game g("explore_then_commit", [](int arm, int trial) {
    return separable(arm, trial) * (arm == best_separable && trial == 1 ? 20 : 1);
  });
  g.calls(1000);
  for (int arm = 1; arm < 11; ++arm)
    if (arm != g.incumbent()) CHECK(g.trials(arm) == 2);
  CHECK(g.incumbent() != best_separable);
}

TEST_CASE("the periodic retest finds an arm that has become the best, and pays for it for ever") {
  game g("periodic_retest", separable);
  g.calls(900);
  CHECK(g.incumbent() == best_separable);
  CHECK(g.trials(10) == 5);
  g.now([](int arm, int trial) { return arm == 10 ? 1e-5 : separable(arm, trial); });
  g.calls(300);
  CHECK(g.incumbent() == 10);
  const int before = g.trials(9);
  g.calls(5000);
  CHECK(g.trials(9) - before >= 20);
}

TEST_CASE("epsilon-greedy takes any arm in one call of ten") {
  game g("epsilon_greedy", separable);
  g.calls(20000);
  CHECK(g.incumbent() == best_separable);
  CHECK(double(g.made() - g.trials(best_separable)) / double(g.made()) ==
        Approx(0.1 * 10 / 11).margin(0.03));
}

TEST_CASE("UCB tries every arm, the slow ones ever less") {
  game g("ucb", separable);
  g.calls(5000);
  for (int arm = 0; arm < 11; ++arm) CHECK(g.trials(arm) >= 1);
  for (int arm = 0; arm < 11; ++arm) CHECK(g.trials(best_separable) >= g.trials(arm));
  CHECK(g.trials(0) < g.trials(7));
}

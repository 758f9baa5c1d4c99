// SPDX-License-Identifier: BSL-1.0
//
// Every 1000 calls each arm is tried five times again and the smallest mean runs until the next
// time, which is how MVAPICH-Plus tunes at run time by default.
// Source: MVAPICH-Plus user guide, DYNAMIC_TUNE_THRESHOLD and TEST_COUNT.
#ifdef RAILPASS_LIST_POLICY
RAILPASS_LIST_POLICY(periodic_retest,
                     "tries every arm five times every 1000 calls, as MVAPICH-Plus; for comparison")
#elif !defined(RAILPASS_SELECT_POLICIES_PEERS_PERIODIC_RETEST)
#define RAILPASS_SELECT_POLICIES_PEERS_PERIODIC_RETEST

#include "railpass/select/policies/peers/trial_policy.hpp"

namespace railpass::select {

class periodic_retest_policy final : public trial_policy {
 public:
  explicit periodic_retest_policy(policy_input input) : trial_policy(std::move(input.priors)) {
    want_all(trials);
  }

  std::string reason() const override {
    return "the smallest mean of five trials of every arm; every 1000 calls all arms are tried "
           "again";
  }

 private:
  static constexpr std::size_t trials = 5;
  static constexpr std::int64_t period = 1000;

  void decide(std::int64_t calls) override {
    if (testing_) {
      choose(smallest([this](std::size_t a) { return mean(a); }));
      testing_ = false;
      tested_at_ = calls;
      want_all(0);
    } else if (calls - tested_at_ >= period) {
      for (std::size_t a = 0; a < num_arms(); ++a) forget(a);
      want_all(trials);
      testing_ = true;
    }
  }

  void settle(std::int64_t calls, epoch_plan& p) const override {
    p.length = int(std::clamp<std::int64_t>(tested_at_ + period - calls, 1, period));
    p.timed_stride = 16;  // a plan needs something to be made from
  }

  bool testing_ = true;
  std::int64_t tested_at_ = 0;
};

}  // namespace railpass::select

#endif

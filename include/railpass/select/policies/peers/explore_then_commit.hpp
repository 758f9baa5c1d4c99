// SPDX-License-Identifier: BSL-1.0
//
// Explore, then commit, as the autotuner of Intel MPI does by default: every arm once to warm up
// and once for its time, in order; then the fastest to the end of the run. Source: Intel MPI
// Library Developer Reference 2021.15, I_MPI_TUNING_AUTO_ITER_NUM and
// I_MPI_TUNING_AUTO_WARMUP_ITER_NUM.
#ifdef RAILPASS_LIST_POLICY
RAILPASS_LIST_POLICY(explore_then_commit,
                     "times every arm once after a warm-up, then keeps the fastest, as Intel MPI's "
                     "autotuner; for comparison")
#elif !defined(RAILPASS_SELECT_POLICIES_PEERS_EXPLORE_THEN_COMMIT)
#define RAILPASS_SELECT_POLICIES_PEERS_EXPLORE_THEN_COMMIT

#include "railpass/select/policies/peers/trial_policy.hpp"

namespace railpass::select {

class explore_then_commit_policy final : public trial_policy {
 public:
  explicit explore_then_commit_policy(policy_input input) : trial_policy(std::move(input.priors)) {
    want_all(warm_up + 1);
  }

  std::string reason() const override { return "the fastest of one trial each after a warm-up"; }

 private:
  static constexpr std::size_t warm_up = 1;

  void decide(std::int64_t) override {
    if (!std::exchange(committed_, true))
      choose(smallest([this](std::size_t a) { return samples(a)[warm_up]; }));
  }

  bool committed_ = false;
};

}  // namespace railpass::select

#endif

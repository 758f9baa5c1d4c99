// SPDX-License-Identifier: BSL-1.0
//
// ADCL's brute force: every arm 30 times, its outliers left out (adcl_score), the fastest for good.
// ADCL reduces each rank's mean with MAX; here every call counts with its slowest rank.
// Source: Gabriel, Feki, Benkert, Resch: Towards performance portability through runtime adaptation
// for high-performance computing applications, Concurrency and Computation 22, 2010,
// doi:10.1002/cpe.1586.
#ifdef RAILPASS_LIST_POLICY
RAILPASS_LIST_POLICY(adcl_brute_force,
                     "tries every arm 30 times, then keeps the fastest, as ADCL; for comparison")
#elif !defined(RAILPASS_SELECT_POLICIES_PEERS_ADCL_BRUTE_FORCE)
#define RAILPASS_SELECT_POLICIES_PEERS_ADCL_BRUTE_FORCE

#include "railpass/select/policies/peers/trial_policy.hpp"

namespace railpass::select {

class adcl_brute_force_policy final : public trial_policy {
 public:
  explicit adcl_brute_force_policy(policy_input input) : trial_policy(std::move(input.priors)) {
    want_all(adcl_trials);
  }

  std::string reason() const override {
    return "the smallest filtered mean after every arm was tried " + std::to_string(adcl_trials) +
           " times";
  }

 private:
  void decide(std::int64_t) override {
    if (!std::exchange(decided_, true))
      choose(smallest([this](std::size_t a) { return adcl_score(samples(a)); }));
  }

  bool decided_ = false;
};

}  // namespace railpass::select

#endif

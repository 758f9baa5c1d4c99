// SPDX-License-Identifier: BSL-1.0
//
// Every arm three times, however slow it is; then the one with the smallest mean for good: the
// cheapest sweep that is not at the mercy of a single sample.
#ifdef RAILPASS_LIST_POLICY
RAILPASS_LIST_POLICY(round_robin,
                     "tries every arm three times in turn, then keeps the fastest; for comparison")
#elif !defined(RAILPASS_SELECT_POLICIES_PEERS_ROUND_ROBIN)
#define RAILPASS_SELECT_POLICIES_PEERS_ROUND_ROBIN

#include "railpass/select/policies/peers/trial_policy.hpp"

namespace railpass::select {

class round_robin_policy final : public trial_policy {
 public:
  static constexpr int trials = 3;

  explicit round_robin_policy(policy_input input) : trial_policy(std::move(input.priors)) {
    want_all(trials);
  }

  std::string reason() const override {
    return "the smallest mean after every arm was tried " + std::to_string(trials) + " times";
  }

 private:
  void decide(std::int64_t) override {
    choose(smallest([this](std::size_t a) { return mean(a); }));
  }
};

}  // namespace railpass::select

#endif

// SPDX-License-Identifier: BSL-1.0
//
// One call in ten takes any arm at random, the others the one with the smallest mean, in which the
// model counts as one pseudo-observation.
// Source: Sutton, Barto: Reinforcement Learning, MIT Press, 2018, section 2.2.
#ifdef RAILPASS_LIST_POLICY
RAILPASS_LIST_POLICY(
    epsilon_greedy,
    "one call in ten takes any arm, every other call the fastest so far; for comparison")
#elif !defined(RAILPASS_SELECT_POLICIES_PEERS_EPSILON_GREEDY)
#define RAILPASS_SELECT_POLICIES_PEERS_EPSILON_GREEDY

#include "railpass/select/policies/peers/sampling_policy.hpp"

#include <string>

namespace railpass::select {

class epsilon_greedy_policy final : public sampling_policy {
 public:
  explicit epsilon_greedy_policy(policy_input input) : sampling_policy(input) { update(); }

  std::string reason() const override {
    return "the smallest mean; one call in ten takes any arm at random";
  }

 private:
  static constexpr double explored_share = 0.1;

  void update() override {
    const std::vector<double> means = sums().means();
    std::fill(probability().begin(), probability().end(), explored_share / double(means.size()));
    probability()[std::size_t(std::min_element(means.begin(), means.end()) - means.begin())] +=
        1 - explored_share;
  }
};

}  // namespace railpass::select

#endif

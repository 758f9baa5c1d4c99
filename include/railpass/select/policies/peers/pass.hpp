// SPDX-License-Identifier: BSL-1.0
//
// Probability matching: every call takes arm a with probability proportional to mean_a^-g. The
// model counts as one pseudo-observation of each arm, scaled to what was measured.
// Source: Nishtala, Patel, Sanghavi, Chakrabarti: Automatic tuning of collective communications in
// MPI (PASS), poster, University of California at Berkeley; it gives no formula, the power is ours.
#ifdef RAILPASS_LIST_POLICY
RAILPASS_LIST_POLICY(pass,
                     "takes each arm with a probability proportional to its mean time to the power "
                     "of -pass_exponent")
#elif !defined(RAILPASS_SELECT_POLICIES_PEERS_PASS)
#define RAILPASS_SELECT_POLICIES_PEERS_PASS

#include "railpass/select/policies/peers/sampling_policy.hpp"

#include <string>

namespace railpass::select {

class pass_policy final : public sampling_policy {
 public:
  explicit pass_policy(policy_input input)
      : sampling_policy(input), exponent_(input.pass_exponent) {
    if (!(exponent_ > 0 && std::isfinite(exponent_)))
      throw error("policy pass: pass_exponent: expected a positive number");
    update();
  }

  std::string reason() const override {
    char text[160];
    std::snprintf(
        text, sizeof text,
        "every arm is taken with a probability proportional to mean^-%g; this arm has the "
        "highest, %.1f %%",
        exponent_, 100 * probabilities()[likeliest()]);
    return text;
  }

 private:
  void update() override {
    const std::vector<double> means = sums().means();
    const double best = *std::min_element(means.begin(), means.end());
    double sum = 0;
    for (std::size_t a = 0; a < means.size(); ++a)
      sum += probability()[a] = std::pow(best / means[a], exponent_);
    for (double& p : probability()) p /= sum;
  }

  double exponent_;
};

}  // namespace railpass::select

#endif

// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_POLICY
RAILPASS_LIST_POLICY(fixed,
                     "always the arm that is predicted to be the fastest, or the arm that is asked "
                     "for; learns nothing")
#elif !defined(RAILPASS_SELECT_POLICIES_FIXED)
#define RAILPASS_SELECT_POLICIES_FIXED

#include "railpass/select/policy/tally.hpp"

namespace railpass::select {

/// The choice by the model alone, unless policy_input::fixed_arm names an arm.
class fixed_policy final : public constant_policy {
 public:
  explicit fixed_policy(policy_input input)
      : fixed_policy{choose(input), input.fixed_arm.has_value(), std::move(input.priors)} {}

  std::string reason() const override {
    return asked_ ? "the arm was asked for" : "the arm is predicted to be the fastest";
  }

 private:
  fixed_policy(int arm, bool asked, std::vector<arm_prior> priors)
      : constant_policy(std::move(priors), arm), asked_(asked) {}

  static int choose(const policy_input& input) {
    const arm_prior* best = nullptr;
    for (const arm_prior& p : input.priors) {
      if (input.fixed_arm && p.arm == *input.fixed_arm) return p.arm;
      if (!best || best->measured_only || (!p.measured_only && p.log_seconds < best->log_seconds))
        best = &p;
    }
    if (input.fixed_arm)
      throw error("policy fixed: arm " + std::to_string(*input.fixed_arm) +
                  " is not among the eligible arms");
    if (!best) throw error("policy fixed: expected at least one arm");
    return best->arm;
  }

  bool asked_;
};

}  // namespace railpass::select

#endif

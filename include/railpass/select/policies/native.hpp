// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_POLICY
RAILPASS_LIST_POLICY(native,
                     "always the MPI library's own collective, timed now and then for statistics")
#elif !defined(RAILPASS_SELECT_POLICIES_NATIVE)
#define RAILPASS_SELECT_POLICIES_NATIVE

#include "railpass/select/policy/tally.hpp"

namespace railpass::select {

class native_policy final : public constant_policy {
 public:
  explicit native_policy(policy_input input)
      : native_policy{number_of_native(input.priors), std::move(input.priors)} {}

  std::string reason() const override {
    return "the policy is to leave all calls to the MPI library";
  }

 private:
  native_policy(int arm, std::vector<arm_prior> priors) : constant_policy(std::move(priors), arm) {}

  static int number_of_native(std::span<const arm_prior> priors) {
    for (const arm_prior& p : priors)
      if (p.native) return p.arm;
    throw error("policy native: expected a native arm among the arms");
  }
};

}  // namespace railpass::select

#endif

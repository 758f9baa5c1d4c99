// SPDX-License-Identifier: BSL-1.0
//
// All policies of policies.def, by name.
#pragma once

#include "railpass/base/error.hpp"
#include "railpass/base/names.hpp"
#include "railpass/select/policies.def"
#include "railpass/select/policy/policy.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace railpass::select {

struct policy_description {
  std::string_view name;
  std::string_view text;
  bool is_native_only;  ///< no arm but native needs a prior
  std::unique_ptr<policy> (*make)(policy_input input);
};

#define RAILPASS_LIST_POLICY(name, text)                                         \
  policy_description{#name, text, std::is_same_v<name##_policy, native_policy>,  \
                     [](policy_input input) -> std::unique_ptr<policy> {         \
                       return std::make_unique<name##_policy>(std::move(input)); \
                     }},
inline constexpr policy_description policies[] = {
#include "railpass/select/policies.def"
};
#undef RAILPASS_LIST_POLICY

/// Returns the policy of this name.
/// @throws error, which lists the known policies, if there is none
inline const policy_description& require_policy(std::string_view name) {
  for (const policy_description& p : policies)
    if (p.name == name) return p;
  throw error("policy " + expected_one_of(name, policies, &policy_description::name));
}

/// Creates a policy for one context.
/// @throws error if there is no policy of this name, or if `input` has no native arm or a setting
///   out of range
inline std::unique_ptr<policy> make_policy(std::string_view name, policy_input input) {
  return require_policy(name).make(std::move(input));
}

}  // namespace railpass::select

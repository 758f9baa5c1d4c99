// SPDX-License-Identifier: BSL-1.0
//
// All policies of policies.def, by name.
#pragma once

#include "railpass/base/error.hpp"
#include "railpass/base/names.hpp"
#include "railpass/select/policy/policy.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

// Compiling all policies takes many seconds: railpass itself does so once, in
// lib/select/policies.cpp. Other programs need nothing but headers.
#ifdef RAILPASS_COMPILED_REGISTRY
namespace railpass::select {
extern const std::span<const policy_description> policies;
}
#else
#include "railpass/select/all_policies.hpp"
namespace railpass::select {
inline constexpr std::span<const policy_description> policies = listed_policies;
}
#endif

namespace railpass::select {

/// Returns the policy of this name.
/// @throws error with a list of the known policies, if there is no such policy
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

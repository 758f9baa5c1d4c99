// SPDX-License-Identifier: BSL-1.0
//
// Includes all policies and lists them. Policies by name are in policies.hpp.
#pragma once

#include "railpass/select/policies.def"
#include "railpass/select/policy/policy.hpp"

#include <memory>
#include <type_traits>
#include <utility>

namespace railpass::select {

#define RAILPASS_LIST_POLICY(name, text)                                         \
  policy_description{#name, text, std::is_same_v<name##_policy, native_policy>,  \
                     [](policy_input input) -> std::unique_ptr<policy> {         \
                       return std::make_unique<name##_policy>(std::move(input)); \
                     }},
inline constexpr policy_description listed_policies[] = {
#include "railpass/select/policies.def"
};
#undef RAILPASS_LIST_POLICY

}  // namespace railpass::select

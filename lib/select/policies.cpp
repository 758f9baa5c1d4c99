// SPDX-License-Identifier: BSL-1.0
#include "railpass/select/policies.hpp"

#include "railpass/select/all_policies.hpp"

namespace railpass::select {

constinit const std::span<const policy_description> policies = listed_policies;

}  // namespace railpass::select

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/runtime/settings_in_force.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal {

/// The words of a list with commas; empty words are left out.
std::vector<std::string_view> words_of(std::string_view list);

/// "; did you mean 'broadcast'?", or empty if no collective has a name like this one.
std::string meant_collective(std::string_view name);

/// A sentence for each wrong value of the right kind: unknown policies, collectives and arms, and a
/// profile that cannot be read. Reads the profile.
std::vector<std::string> problems_of(const settings_in_force& all);

}  // namespace railpass::internal

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/runtime/settings_in_force.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal {

/// Of a list with commas; empty ones are left out.
std::vector<std::string_view> words_of(std::string_view list);

/// "; did you mean 'broadcast'?", or empty if no collective has a name like this one.
std::string meant_collective(std::string_view name);

/// What is wrong with values that have the right kind, a sentence each: policies, collectives and
/// arms that there are not, and a profile that cannot be read. Reads that file.
std::vector<std::string> problems_of(const settings_in_force& all);

}  // namespace railpass::internal

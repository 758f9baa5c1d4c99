// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/runtime/settings_in_force.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal {

/// The words of a list with commas; empty words are left out.
std::vector<std::string_view> words_of(std::string_view list);

/// Whether the setting `collectives` contains `name`.
bool is_named(std::string_view collectives, std::string_view name);

/// Whether the settings name particular arms or policies, rather than the most profitable choice.
bool is_particular(const settings& values);

/// The version that the setting `use` names for a function set; empty: no version.
std::string pinned_version(std::string_view use, std::string_view set);
/// The names before the colons of the setting `use` that name no collective.
std::vector<std::string> names_of_sets(std::string_view use);

/// "; did you mean 'broadcast'?", or empty if no collective has a name like this one.
std::string meant_collective(std::string_view name);

/// A sentence for each wrong value of the right kind: unknown policies, collectives and arms, and a
/// profile that cannot be read. Reads the profile.
std::vector<std::string> problems_of(const settings_in_force& all);

}  // namespace railpass::internal

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/base/settings.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal {

/// Settings from the site's file and from the environment, which has priority.
struct settings_in_force {
  settings values;
  /// Source of each value: an environment variable, or "FILE: line 3". Defaults have no entry.
  std::map<std::string, std::string, std::less<>> origins{};
  std::vector<std::string> problems{};  ///< a sentence each; wrong values set nothing
  std::string site_file{};              ///< read if it exists; empty: no file
};

/// `environment` as for read_environment. RAILPASS_CONF names another file than the installation's;
/// empty: none. RAILPASS_SITE is no setting: see store::locations_of. The file has lines `name =
/// value`, and others that are empty or begin with #.
settings_in_force read_settings(const char* const* environment);

/// The environment variable of a setting.
std::string variable_of(std::string_view setting);

}  // namespace railpass::internal

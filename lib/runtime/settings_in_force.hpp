// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/base/settings.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal {

/// What the site's file says, unless the environment says otherwise.
struct settings_in_force {
  settings values;
  /// Who set them, by name: an environment variable, or "FILE: line 3". The default is nobody's.
  std::map<std::string, std::string, std::less<>> origins{};
  std::vector<std::string> problems{};  ///< a sentence each; what is wrong sets nothing
  std::string site_file{};              ///< that is read if it is there; empty: none
};

/// `environment` as for read_environment. RAILPASS_CONF names another file than the installation's;
/// empty: none. The file has lines `name = value`, and others that are empty or begin with #.
settings_in_force read_settings(const char* const* environment);

/// The environment variable of a setting.
std::string variable_of(std::string_view setting);

}  // namespace railpass::internal

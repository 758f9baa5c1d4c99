// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/environment.hpp"

#include "lib/runtime/setting_values.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <unistd.h>

namespace railpass::internal::cli {

settings_in_force checked_settings() {
  settings_in_force result = read_settings(environ);
  std::ranges::move(problems_of(result), std::back_inserter(result.problems));
  return result;
}

store::locations knowledge_locations() {
  const std::string set = read_settings(environ).values.knowledge;
  return store::locations_of(set == "off" ? "on" : set);
}

}  // namespace railpass::internal::cli

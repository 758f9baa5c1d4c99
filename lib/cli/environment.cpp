// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/environment.hpp"

#include "lib/base/usage_error.hpp"
#include "lib/runtime/setting_values.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <unistd.h>

namespace railpass::internal::cli {

settings_in_force checked_settings() {
  settings_in_force result = read_settings(environ);
  std::ranges::move(problems_of(result), std::back_inserter(result.problems));
  return result;
}

void require_railpass_on() {
  const auto refuse = [](const std::string& by) {
    throw usage_error(by +
                      " switches railpass off; expected railpass to be on, because this verb "
                      "measures the effect of railpass");
  };
  const char* const found = std::getenv("RAILPASS");  // only the preload library reads it
  const std::string value = found ? found : "";
  if (value == "off" || value == "0" || value == "false" || value == "no")
    refuse("RAILPASS=" + value);
  const settings_in_force here = read_settings(environ);
  const auto origin = here.origins.find("enable");
  if (!here.values.enable) refuse(origin != here.origins.end() ? origin->second : "a setting");
}

store::locations knowledge_locations() {
  const std::string set = read_settings(environ).values.knowledge;
  return store::locations_of(set == "off" ? "on" : set);
}

}  // namespace railpass::internal::cli

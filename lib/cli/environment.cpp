// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/environment.hpp"

#include "lib/session/setting_values.hpp"

#include <algorithm>
#include <iterator>
#include <unistd.h>

namespace railpass::cli {

environment_settings read_settings() {
  environment_settings result = read_environment(environ);
  std::ranges::move(problems_of(result.values), std::back_inserter(result.problems));
  return result;
}

}  // namespace railpass::cli

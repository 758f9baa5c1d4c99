// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/environment.hpp"

#include "lib/runtime/setting_values.hpp"

#include <algorithm>
#include <iterator>
#include <unistd.h>

namespace railpass::internal::cli {

settings_in_force checked_settings() {
  settings_in_force result = read_settings(environ);
  std::ranges::move(problems_of(result), std::back_inserter(result.problems));
  return result;
}

}  // namespace railpass::internal::cli

// SPDX-License-Identifier: BSL-1.0
//
// The results of a tuning as words and tables.
#pragma once

#include "lib/report/output.hpp"
#include "lib/tune/results.hpp"

#include <string>

namespace railpass::internal::tune {

/// "4 min 20 s"
std::string duration_text(double seconds);

void print(const report& r, railpass::internal::report::output& out);

}  // namespace railpass::internal::tune

// SPDX-License-Identifier: BSL-1.0
//
// A profile as words and tables, beside the measurements that it was fitted to.
#pragma once

#include "lib/report/output.hpp"
#include "models/profile.hpp"
#include "models/samples.hpp"

namespace railpass::internal::report {

void print(const profile& p, const measurements& m, output& out);

}  // namespace railpass::internal::report

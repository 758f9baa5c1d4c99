// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>

namespace railpass::internal {

/// Passes one record to the program's handler, or else to `destination`: "stderr", a file's name,
/// or empty for nowhere; what is `for_user` to standard error in any case.
void write_record(const std::string& destination, const std::string& text, bool for_user);

}  // namespace railpass::internal

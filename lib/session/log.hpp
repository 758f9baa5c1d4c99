// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>

namespace railpass {

/// Passes one record to the program's handler, or else to `place`: "stderr", a file's name, or
/// empty for nowhere.
void write_record(const std::string& place, const std::string& text);

}  // namespace railpass

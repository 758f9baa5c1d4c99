// SPDX-License-Identifier: BSL-1.0
//
// The content of advisories.json, compiled into the library by CMake.
#pragma once

#include <string_view>

namespace railpass::internal::files {

extern const std::string_view text_of_shipped_advisories;

}  // namespace railpass::internal::files

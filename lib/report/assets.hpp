// SPDX-License-Identifier: BSL-1.0
//
// Files inside pages, which the build puts into the program (assets.cpp.in).
#pragma once

#include <string_view>

namespace railpass::internal::report {

extern const std::string_view chart_js;  ///< Chart.js: MIT licence, which it says itself
extern const std::string_view page_js;
extern const std::string_view page_css;

}  // namespace railpass::internal::report

// SPDX-License-Identifier: BSL-1.0
//
// The page of a characterisation: one HTML file.
#pragma once

#include "lib/characterise/outcome.hpp"

#include <string>

namespace railpass::internal::characterise {

/// `railpass_version`: the writer of the page.
std::string page_of(const outcome& o, const std::string& railpass_version);

}  // namespace railpass::internal::characterise

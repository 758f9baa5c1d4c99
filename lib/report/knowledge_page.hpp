// SPDX-License-Identifier: BSL-1.0
//
// A page of knowledge: the successor of ADCL's history in the browser.
#pragma once

#include "railpass/knowledge/experience.hpp"

#include <span>
#include <string>

namespace railpass::internal::report {

/// Per collective the best arm over size and ranks, times against sizes, how the best arms changed
/// from run to run, and where predictions were wrong. `known`: all runs together, and `runs` each
/// of its own, in any order; either may be empty. HTML that stands alone. Throws error as
/// analyse_knowledge().
std::string knowledge_page(std::span<const knowledge::experience> known,
                           std::span<const knowledge::run_record> runs);

}  // namespace railpass::internal::report

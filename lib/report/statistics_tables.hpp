// SPDX-License-Identifier: BSL-1.0
//
// Statistics dumps as words and tables.
#pragma once

#include "lib/report/output.hpp"
#include "railpass/select/statistics/dump.hpp"

#include <string>

namespace railpass::internal::report {

struct statistics_view {
  bool markdown = false;
  bool all = false;  ///< all contexts and arms, not only the most used
};

/// One line per context and arm, for programs.
table statistics_numbers(const select::statistics_dump& dump);
/// For people, to go to out.words().
std::string statistics_text(const select::statistics_dump& dump, const statistics_view& view,
                            output& out);

/// The hosts that the program ran on: one line per host, for programs and for people.
table hosts_numbers(const select::statistics_dump& dump);
std::string hosts_text(const select::statistics_dump& dump, const statistics_view& view,
                       output& out);

}  // namespace railpass::internal::report

// SPDX-License-Identifier: BSL-1.0
//
// Tables of the analysis of knowledge (include/railpass/knowledge/analysis.hpp).
#pragma once

#include "lib/report/table.hpp"
#include "railpass/knowledge/analysis.hpp"
#include "railpass/knowledge/experience.hpp"

#include <span>
#include <string>
#include <vector>

namespace railpass::internal::report {

/// "all_reduce builtin, 16 ranks, 2 per node, world": all of a problem but its size.
std::string shape_of(const knowledge::problem& p);

/// Problems that differ in their size alone.
struct analysed_group {
  std::string title;
  table problems;    ///< by size: the best arm, those as good, D_max
  table predictors;  ///< how good predictions from the other sizes are; empty for a single size
};

/// Throws error if times are not above 0 or nothing was timed.
std::vector<analysed_group> analyse_knowledge(std::span<const knowledge::experience> known,
                                              const knowledge::analysis_options& o = {});

}  // namespace railpass::internal::report

// SPDX-License-Identifier: BSL-1.0
//
// A page of results: statistics dumps, traces, benches and comparisons.
#pragma once

#include "lib/files/call_trace.hpp"
#include "lib/files/comparison.hpp"
#include "models/samples.hpp"
#include "railpass/select/statistics/dump.hpp"

#include <span>
#include <string>
#include <variant>

namespace railpass::internal::report {

struct result_file {
  std::string name;
  std::variant<files::comparison, select::statistics_dump, files::call_trace, bench_results> holds;
};

/// `railpass_version`: the writer of the page.
std::string results_page(std::span<const result_file> results, const std::string& railpass_version);

}  // namespace railpass::internal::report

// SPDX-License-Identifier: BSL-1.0
//
// The results of a bench as words and tables.
#pragma once

#include "lib/measure/bench_cell.hpp"
#include "lib/report/output.hpp"
#include "models/samples.hpp"

#include <cstdint>
#include <string>

namespace railpass::internal::measure {

/// "broadcast of 64KiB"
std::string title_of(const std::string& collective, std::int64_t bytes);
void print_where(const bench_results& all, report::output& out);
/// `all`: all arms, not only the fastest.
void print_cell(const cell_result& cell, const std::string& title, bool all, report::output& out);
/// The results of over_launches().
void print_launches(const bench_results& all, int launches, bool show_all, report::output& out);

}  // namespace railpass::internal::measure

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "collectives/collective.hpp"
#include "lib/cli/parallel.hpp"
#include "models/samples.hpp"

#include <functional>
#include <span>
#include <string>

namespace railpass::cli {

/// Reports how far the measurement is: a fraction and what is being done.
using progress_report = std::function<void(double, const std::string&)>;

/// Measures messages within a node and across nodes for about `budget_s`. Messages go over `rails`,
/// or are MPI's own if that is empty. Collective; the result is that of rank 0 and empty elsewhere.
/// Throws error (on all ranks) if the budget is not enough for the smallest messages, or there are
/// no such rails.
measurements sample_links(const job& j, const std::string& rails, double budget_s,
                          const progress_report& progress);

/// Measures the machine for about `budget_s`: links, copies and reductions, and the MPI library's
/// own collectives `natives`. As sample_links otherwise.
measurements sample_machine(const job& j, const std::string& rails, double budget_s,
                            std::span<const collective> natives, const progress_report& progress);

}  // namespace railpass::cli

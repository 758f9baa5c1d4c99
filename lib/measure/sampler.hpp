// SPDX-License-Identifier: BSL-1.0
//
// Takes the measurements to which a profile of this machine is fitted.
#pragma once

#include "collectives/collective.hpp"
#include "lib/measure/job.hpp"
#include "models/samples.hpp"

#include <span>
#include <string>

namespace railpass::internal::measure {

/// Measures the machine for about `budget_s`: links, copies and reductions, what ranks of a node
/// hand over, and the MPI library's own collectives `natives`. As sample_links (links.hpp)
/// otherwise.
measurements sample_machine(const job& j, const std::string& rails, double budget_s,
                            std::span<const collective> natives, const progress_report& progress);

}  // namespace railpass::internal::measure

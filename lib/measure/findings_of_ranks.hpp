// SPDX-License-Identifier: BSL-1.0
//
// Checks of the hosts of a job by its ranks.
#pragma once

#include "lib/measure/findings.hpp"
#include "lib/measure/job.hpp"

#include <vector>

namespace railpass::internal::measure {

/// Each host is examined by its first rank; rank 0 gets all findings. Collective over
/// MPI_COMM_WORLD.
std::vector<finding> examine_hosts(const job& j);

}  // namespace railpass::internal::measure

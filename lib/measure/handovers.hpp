// SPDX-License-Identifier: BSL-1.0
//
// What it takes the ranks of a node to hand something over in memory that they share.
#pragma once

#include "lib/measure/job.hpp"
#include "models/samples.hpp"

namespace railpass::internal::measure {

/// Whether all these ranks, which are on one host, may copy from and to each other's memory.
/// Collective over them.
bool can_copy_to_each_other(MPI_Comm ranks);

/// Measures for about `budget_s`, with the executor that collectives use: each rank of a node hands
/// over to the next one, all at once, through cells and, where the kernel lets them, by single
/// copies. Rank 0 adds to `all` what its own node takes; nothing if it is alone there. Collective
/// over MPI_COMM_WORLD; rank 0's clock decides when it ends.
void sample_handovers(const job& j, measurements& all, double budget_s,
                      const progress_report& progress);

}  // namespace railpass::internal::measure

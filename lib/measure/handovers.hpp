// SPDX-License-Identifier: BSL-1.0
//
// Measures how fast ranks of a node hand data over in shared memory.
#pragma once

#include "lib/measure/job.hpp"
#include "models/samples.hpp"

namespace railpass::internal::measure {

/// Whether all these ranks of one host may copy from and to each other's memory. Collective over
/// the ranks.
bool can_copy_to_each_other(MPI_Comm ranks);

/// Measures for about `budget_s` seconds with the executor of collectives. All ranks of a node hand
/// data to the next rank at the same time, through cells and, if the kernel permits, by single
/// copies. Rank 0 adds the times of its node to `all`; nothing if rank 0 is alone there. Collective
/// over MPI_COMM_WORLD; rank 0's clock decides the end.
void sample_handovers(const job& j, measurements& all, double budget_s,
                      const progress_report& progress);

}  // namespace railpass::internal::measure

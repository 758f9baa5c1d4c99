// SPDX-License-Identifier: BSL-1.0
//
// Whether ranks have cores of their own while they measure.
#pragma once

namespace railpass::internal::measure {

/// The share of a core, from 0 to 1, of the rank that got the least while all ranks computed for
/// 40 ms: 1 where each rank has a core of its own, 1/2 where two ranks share one, or a rank and
/// other work of the host. Equal on all ranks. Collective over MPI_COMM_WORLD.
double least_core_share();

}  // namespace railpass::internal::measure

// SPDX-License-Identifier: BSL-1.0
//
// What the verbs that run under mpirun share.
#pragma once

#include "lib/measure/job.hpp"

#include <functional>

namespace railpass::internal::cli {

/// Initialises MPI, runs `body` on all ranks and finalizes. Errors that `body` throws must be
/// thrown on all ranks; what only one rank meets ends the job.
int run_job(const std::function<int(const measure::job&)>& body);

/// Runs `work` on rank 0 alone. Collective: what it throws there is thrown on all ranks, so that
/// all of them end alike.
void on_rank_0(const measure::job& j, const std::function<void()>& work);

}  // namespace railpass::internal::cli

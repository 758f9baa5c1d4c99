// SPDX-License-Identifier: BSL-1.0
//
// What the verbs that run under mpirun share.
#pragma once

#include "lib/measure/job.hpp"

#include <functional>

namespace railpass::internal::cli {

/// Whether mpirun or its like started this process.
bool under_launcher();

/// Whether it started this process as a rank. Slurm's batch scripts have a number as ranks have,
/// too, and are none.
bool is_rank();

/// Whether this process is to print: alone, or rank 0 of the job as far as the environment tells.
/// Works before MPI is initialised, which matters for wrong use.
bool speaks_for_the_job();

/// For the ranks that do not speak, before they end with a status that is not 0: mpirun ends the
/// job at the first one, and rank 0 must have spoken by then.
void let_rank_0_speak();

/// Initialises MPI, runs `body` on all ranks and finalizes. Errors that `body` throws must be
/// thrown on all ranks; what only one rank meets ends the job.
int run_job(const std::function<int(const measure::job&)>& body);

/// Runs `work` on rank 0 alone. Collective: what it throws there is thrown on all ranks, so that
/// all of them end alike.
void on_rank_0(const measure::job& j, const std::function<void()>& work);

}  // namespace railpass::internal::cli

// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace railpass::internal {

/// Environment variables in which launchers tell a process its rank in the job. Slurm also sets its
/// variable for a program that is no rank of an MPI job.
inline constexpr const char* rank_variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                                 "SLURM_PROCID"};

}  // namespace railpass::internal

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace railpass::internal {

/// All ranks go on, or all throw the same error, which begins with `subject`: if a rank has a
/// problem, or if these lines are not the same on all. Costs one small reduction if all is well.
/// Collective over `comm`.
void require_same(MPI_Comm comm, const std::string& subject, const std::vector<std::string>& lines,
                  const std::string& problem = {});

}  // namespace railpass::internal

// SPDX-License-Identifier: BSL-1.0
//
// The executor over MPI, compiled once.
#pragma once

#include "lib/exec/executor.hpp"
#include "lib/rails/mpi/rail.hpp"

namespace railpass::internal {

extern template class executor<mpi_rail>;

}  // namespace railpass::internal

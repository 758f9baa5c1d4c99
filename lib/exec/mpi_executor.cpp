// SPDX-License-Identifier: BSL-1.0
#include "lib/exec/mpi_executor.hpp"

namespace railpass::internal {

template class executor<mpi_rail>;

}  // namespace railpass::internal

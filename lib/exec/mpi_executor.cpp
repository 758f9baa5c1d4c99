// SPDX-License-Identifier: BSL-1.0
#include "lib/exec/mpi_executor.hpp"

namespace railpass {

template class executor<mpi_rail>;

}  // namespace railpass

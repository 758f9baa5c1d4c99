// SPDX-License-Identifier: BSL-1.0
//
// In place of include/railpass/base/clock.hpp: the simulation's clock.
#pragma once

#include <mpi.h>

namespace railpass {

using clock_function = double (*)();

inline double steady_clock_s() { return PMPI_Wtime(); }

}  // namespace railpass

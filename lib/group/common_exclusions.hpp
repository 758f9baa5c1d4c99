// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/select/lockstep/exclusions.hpp"

#include <mpi.h>

namespace railpass::internal {

/// Makes `table` the union of the tables of all ranks, or as much of the union as a table holds;
/// equal on all ranks. Costs three small reductions per exclusion: for tables that are known to
/// differ. Allocates nothing. Collective over `comm`. Returns an MPI error code.
int unite(select::exclusions& table, MPI_Comm comm);

/// Whether the table of any rank excludes the MPI library's own collectives. Collective over
/// `comm`. Returns an MPI error code.
int ask_for_native(const select::exclusions& table, MPI_Comm comm, bool& any_excludes);

}  // namespace railpass::internal

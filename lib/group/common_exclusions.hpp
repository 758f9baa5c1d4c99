// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/select/lockstep/exclusions.hpp"

#include <mpi.h>

#include <cstdint>
#include <functional>

namespace railpass::internal {

/// Replaces a word of at most 63 bits by the least one of all ranks. Returns an MPI error code.
using least_of_ranks = std::function<int(std::uint64_t& word)>;
least_of_ranks least_over(MPI_Comm comm);

/// Makes `table` the union of the tables of all ranks, or as much of the union as a table holds;
/// equal on all ranks. Costs three small reductions per exclusion: for tables that are known to
/// differ. Allocates nothing. Collective. Returns an MPI error code.
int unite(select::exclusions& table, const least_of_ranks& least);

/// Whether the table of any rank excludes the MPI library's own collectives. Collective over
/// `comm`. Returns an MPI error code.
int ask_for_native(const select::exclusions& table, MPI_Comm comm, bool& any_excludes);

}  // namespace railpass::internal

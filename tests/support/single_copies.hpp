// SPDX-License-Identifier: BSL-1.0
//
// Whether the ranks of a communicator may copy from and to each other's memory, found out without
// railpass: machines, containers and launchers differ.
#pragma once

#include "lib/exec/single_copy.hpp"

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace railpass::test {

using namespace internal;

/// Collective; the same on all ranks. They must be on one host.
inline bool single_copies(MPI_Comm comm) {
  int rank = 0, num_ranks = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &num_ranks);
  const std::uint64_t word = 0x1234567800000000u + std::uint64_t(rank);
  const single_copy_probe mine = single_copy_probe::of(word);
  std::vector<single_copy_probe> all(static_cast<std::size_t>(num_ranks));
  MPI_Allgather(&mine, int(sizeof mine), MPI_BYTE, all.data(), int(sizeof mine), MPI_BYTE, comm);
  int copies = 1;
  for (int r = 0; r < num_ranks; ++r)
    if (r != rank && !all[std::size_t(r)].can_copy()) copies = 0;
  MPI_Allreduce(MPI_IN_PLACE, &copies, 1, MPI_INT, MPI_MIN, comm);
  return copies != 0;
}

}  // namespace railpass::test

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/mpi.hpp"

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace railpass::test {

/// Whether a tuned all_reduce adds so many integers of each rank up. Collective.
inline bool sums(MPI_Comm comm, int count) {
  int rank = 0, size = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  std::vector<int> in(std::size_t(count), rank + 1), out(std::size_t(count), -1);
  return mpi::all_reduce(in.data(), out.data(), count, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS &&
         out == std::vector(std::size_t(count), size * (size + 1) / 2);
}

}  // namespace railpass::test

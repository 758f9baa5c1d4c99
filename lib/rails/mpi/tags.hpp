// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/rails/mpi/rank_map.hpp"

#include <mpi.h>

#include <memory>

namespace railpass::internal {

/// Tags for a rail's MPI messages, separate from all other messages: a communicator with all the
/// rail's ranks, and `num_tags` reserved tags there.
struct mpi_tags {
  static constexpr int num_tags = 2;

  MPI_Comm comm = MPI_COMM_NULL;
  rank_map ranks{};  ///< ranks in `comm`
  int first_tag = 0;
  std::shared_ptr<const void> owner{};  ///< reserves the tags during its life
};

}  // namespace railpass::internal

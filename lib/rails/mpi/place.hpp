// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/rails/mpi/rank_map.hpp"

#include <mpi.h>

#include <memory>

namespace railpass::internal {

/// Where MPI's messages of a rail meet nobody else's: on a communicator that has all its ranks,
/// with `num_tags` tags that are nobody else's there.
struct mpi_place {
  static constexpr int num_tags = 2;

  MPI_Comm comm = MPI_COMM_NULL;
  rank_map ranks{};  ///< what `comm` calls the ranks
  int first_tag = 0;
  std::shared_ptr<const void> owner{};  ///< of the tags: nobody else gets them as long as it lives
};

}  // namespace railpass::internal

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <mpi.h>

namespace railpass::internal {

/// An internal communicator with the ranks of a user's communicator, so that messages of railpass
/// and of the user never match. Errors are returned.
struct private_communicator {
  MPI_Comm handle = MPI_COMM_NULL;
  int rank = 0;
  int num_ranks = 1;

  /// Collective. Afterwards the handle is null.
  void free() {
    if (handle != MPI_COMM_NULL) PMPI_Comm_free(&handle);
  }
};

/// Throws error, whose message begins with `subject`, unless `comm` is an intra-communicator.
/// Local.
void require_intra_communicator(MPI_Comm comm, const char* subject);

/// Collective over `user`. Made for its group, not duplicated: MPI_Comm_dup would run the user's
/// attribute callbacks; and not split, for which all ranks would first have to hear of all colours.
/// Returns an MPI error code.
int make_private_communicator(MPI_Comm user, private_communicator& result);

}  // namespace railpass::internal

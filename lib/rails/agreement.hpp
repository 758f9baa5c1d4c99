// SPDX-License-Identifier: BSL-1.0
//
// Rails are opened by all ranks or by none; and how ranks wait meanwhile.
#pragma once

#include <mpi.h>

#include <exception>
#include <string>

namespace railpass::internal {

/// Waits for the request asleep, and so does not take the cores of ranks that measure.
void wait_asleep(MPI_Request& request);

/// Throws the problem of the first rank that has one as error, on all ranks of `comm`. Collective.
void agree(MPI_Comm comm, const std::string& problem);

/// Does work without communication. An exception on one rank throws error on all ranks of `comm`.
/// Collective.
template <class Work>
void on_all(MPI_Comm comm, const Work& work) {
  std::string problem;
  try {
    work();
  } catch (const std::exception& e) {
    problem = e.what();
  }
  agree(comm, problem);
}

}  // namespace railpass::internal

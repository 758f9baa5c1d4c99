// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/agreement.hpp"

#include "railpass/base/error.hpp"

#include <time.h>

namespace railpass::internal {

void wait_asleep(MPI_Request& request) {
  for (int done = 0;;) {
    PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) return;
    const timespec nap{.tv_sec = 0, .tv_nsec = 500'000};
    nanosleep(&nap, nullptr);
  }
}

void agree(MPI_Comm comm, const std::string& problem) {
  int rank = 0, num_ranks = 1;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &num_ranks);
  int first = problem.empty() ? num_ranks : rank;
  PMPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm);
  if (first == num_ranks) return;
  char text[512] = "";
  if (rank == first) problem.copy(text, sizeof text - 1);
  PMPI_Bcast(text, sizeof text, MPI_CHAR, first, comm);
  throw error("the rails cannot be opened: on rank " + std::to_string(first) + ", " + text);
}

}  // namespace railpass::internal

// SPDX-License-Identifier: BSL-1.0
//
// Included before every source: polls cost simulated time, or for ever if they do not, so where
// railpass polls in vain it waits instead.
#pragma once

#include <mpi.h>

#include <unistd.h>

// railpass tests at most this many requests at once, the others in its next poll. If there are
// more, those tested may wait for what the others bring, so they can only be polled.
inline constexpr int railpass_tested_at_once = 64;
// Between two polls railpass does what it can; after so many in vain there is nothing left to do.
inline constexpr int railpass_vain_polls = 3;
inline int railpass_in_vain = 0, railpass_tested_before = 0;

inline int railpass_test_some(int count, MPI_Request* requests, int* found, int* indices,
                              MPI_Status* statuses) {
  const bool only_some =
      count >= railpass_tested_at_once || railpass_tested_before >= railpass_tested_at_once;
  railpass_tested_before = count;
  int code = PMPI_Testsome(count, requests, found, indices, statuses);
  if (code != MPI_SUCCESS || *found != 0) {
    railpass_in_vain = 0;
    return code;
  }
  if (++railpass_in_vain < railpass_vain_polls) return code;
  if (only_some) {
    usleep(1);
    return code;
  }
  railpass_in_vain = 0;
  // Not MPI_Waitsome, which tests all others, too.
  code = PMPI_Waitany(count, requests, indices, statuses);
  *found = *indices == MPI_UNDEFINED ? MPI_UNDEFINED : 1;
  return code;
}

inline int railpass_test(MPI_Request* request, int* done, MPI_Status* status) {
  *done = 1;
  return PMPI_Wait(request, status);
}

// What programs poll in loops of their own.
inline int railpass_test_slowly(MPI_Request* request, int* done, MPI_Status* status) {
  const int code = MPI_Test(request, done, status);
  if (!*done) usleep(1);
  return code;
}

inline int railpass_test_all_slowly(int count, MPI_Request* requests, int* done,
                                    MPI_Status* statuses) {
  const int code = MPI_Testall(count, requests, done, statuses);
  if (!*done) usleep(1);
  return code;
}

#define PMPI_Testsome railpass_test_some
#define PMPI_Test railpass_test
#define MPI_Test railpass_test_slowly
#define MPI_Testall railpass_test_all_slowly

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/mpi.hpp"
#include "support/catch.hpp"

#include <mpi.h>

#include <algorithm>
#include <vector>

namespace railpass::test {

/// Rank 0 sends rank 1 a message so long that MPI needs the sender for it, and calls before it
/// waits for its end; rank 1 receives before it calls. Collective.
class large_message {
 public:
  explicit large_message(MPI_Comm comm) : comm_(comm) {
    MPI_Comm_rank(comm, &rank_);
    if (rank_ < 2) bytes_.resize(8 << 20);
  }

  template <class Call>
  void goes_on_during(const Call& call) {
    const char mark = ++last_mark_;
    const int length = int(bytes_.size());
    if (rank_ == 0) {
      std::ranges::fill(bytes_, mark);
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Isend(bytes_.data(), length, MPI_CHAR, 1, 5, comm_, &request);
      call();
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      return;
    }
    if (rank_ == 1) {
      MPI_Recv(bytes_.data(), length, MPI_CHAR, 0, 5, comm_, MPI_STATUS_IGNORE);
      CHECK(std::ranges::all_of(bytes_, [&](char x) { return x == mark; }));
    }
    call();
  }

 private:
  MPI_Comm comm_;
  int rank_ = 0;
  std::vector<char> bytes_;
  char last_mark_ = 0;
};

}  // namespace railpass::test

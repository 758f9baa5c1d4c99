// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <mpi.h>

namespace railpass {

/// A communicator that is freed at the end of the test; errors on it are returned.
class communicator {
 public:
  static communicator duplicate_of_world() {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    return communicator(comm);
  }
  /// Takes over a communicator.
  explicit communicator(MPI_Comm comm) : comm_(comm) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  communicator(const communicator&) = delete;
  communicator& operator=(const communicator&) = delete;
  ~communicator() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }

  operator MPI_Comm() const { return comm_; }
  int rank() const {
    int rank = 0;
    MPI_Comm_rank(comm_, &rank);
    return rank;
  }
  int size() const {
    int size = 0;
    MPI_Comm_size(comm_, &size);
    return size;
  }

 private:
  MPI_Comm comm_;
};

}  // namespace railpass

// SPDX-License-Identifier: BSL-1.0
#include "lib/group/private_communicator.hpp"

#include "railpass/base/error.hpp"

#include <string>

namespace railpass::internal {

namespace {

// The user's error handler must not hear of a failure that only means: stay native.
class returned_errors {
 public:
  explicit returned_errors(MPI_Comm comm) : comm_(comm) {
    PMPI_Comm_get_errhandler(comm_, &before_);
    PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  ~returned_errors() {
    PMPI_Comm_set_errhandler(comm_, before_);
    PMPI_Errhandler_free(&before_);
  }
  returned_errors(const returned_errors&) = delete;
  returned_errors& operator=(const returned_errors&) = delete;

 private:
  MPI_Comm comm_;
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

}  // namespace

void require_intra_communicator(MPI_Comm comm, const char* subject) {
  int is_inter = 1;
  if (comm != MPI_COMM_NULL) PMPI_Comm_test_inter(comm, &is_inter);
  if (is_inter) throw error(std::string(subject) + ": expected an intra-communicator");
}

int make_private_communicator(MPI_Comm user, private_communicator& result) {
  const returned_errors guard(user);
  MPI_Group all = MPI_GROUP_NULL;
  PMPI_Comm_group(user, &all);
  const int code = PMPI_Comm_create(user, all, &result.handle);
  PMPI_Group_free(&all);
  if (code != MPI_SUCCESS) return code;
  PMPI_Comm_set_errhandler(result.handle, MPI_ERRORS_RETURN);
  PMPI_Comm_rank(result.handle, &result.rank);
  PMPI_Comm_size(result.handle, &result.num_ranks);
  return MPI_SUCCESS;
}

}  // namespace railpass::internal

// SPDX-License-Identifier: BSL-1.0
#include "lib/session/private_communicator.hpp"

namespace railpass {

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

int make_private_communicator(MPI_Comm user, private_communicator& result) {
  const returned_errors guard(user);
  int rank = 0;
  PMPI_Comm_rank(user, &rank);
  if (const int failure = PMPI_Comm_split(user, 0, rank, &result.handle)) return failure;
  PMPI_Comm_set_errhandler(result.handle, MPI_ERRORS_RETURN);
  PMPI_Comm_rank(result.handle, &result.rank);
  PMPI_Comm_size(result.handle, &result.num_ranks);

  MPI_Comm node = MPI_COMM_NULL;
  if (const int failure =
          PMPI_Comm_split_type(result.handle, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node))
    return failure;
  int here = 1, rank_here = 0;
  PMPI_Comm_size(node, &here);
  PMPI_Comm_rank(node, &rank_here);
  PMPI_Comm_free(&node);
  const int leads_host = rank_here == 0 ? 1 : 0;
  if (const int failure =
          PMPI_Allreduce(&leads_host, &result.num_hosts, 1, MPI_INT, MPI_SUM, result.handle))
    return failure;
  return PMPI_Allreduce(&here, &result.ranks_per_node, 1, MPI_INT, MPI_MAX, result.handle);
}

}  // namespace railpass

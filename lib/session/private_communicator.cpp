// SPDX-License-Identifier: BSL-1.0
#include "lib/session/private_communicator.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string_view>

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

// By its name: MPI_COMM_TYPE_SHARED makes a communicator per host, which took a third of the time
// in which a communicator begins to be tuned. Allocates nothing, as the others wait for this rank.
std::uint64_t mark_of_host() {
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  PMPI_Get_processor_name(name, &length);
  return std::hash<std::string_view>{}({name, std::size_t(length)});
}

void count_hosts(std::span<std::uint64_t> mark_of_rank, private_communicator& result) {
  std::ranges::sort(mark_of_rank);
  result.num_hosts = 0;
  for (auto rest = mark_of_rank; !rest.empty(); ++result.num_hosts) {
    const auto here = std::ranges::upper_bound(rest, rest.front()) - rest.begin();
    result.ranks_per_node = std::max(result.ranks_per_node, int(here));
    rest = rest.subspan(std::size_t(here));
  }
}

}  // namespace

int make_private_communicator(MPI_Comm user, private_communicator& result) {
  const returned_errors guard(user);
  int rank = 0, size = 0;
  PMPI_Comm_rank(user, &rank);
  PMPI_Comm_size(user, &size);
  // A rank without memory stays away; the others see it by the number of ranks.
  const std::unique_ptr<std::uint64_t[]> marks(new (std::nothrow) std::uint64_t[std::size_t(size)]);
  if (const int failure = PMPI_Comm_split(user, marks ? 0 : MPI_UNDEFINED, rank, &result.handle))
    return failure;
  if (!marks) return MPI_ERR_NO_MEM;
  PMPI_Comm_set_errhandler(result.handle, MPI_ERRORS_RETURN);
  PMPI_Comm_rank(result.handle, &result.rank);
  PMPI_Comm_size(result.handle, &result.num_ranks);
  if (result.num_ranks != size) {
    result.free();
    return MPI_ERR_NO_MEM;
  }
  const std::uint64_t mine = mark_of_host();
  if (const int failure =
          PMPI_Allgather(&mine, 1, MPI_UINT64_T, marks.get(), 1, MPI_UINT64_T, result.handle))
    return failure;
  count_hosts({marks.get(), std::size_t(size)}, result);
  return MPI_SUCCESS;
}

}  // namespace railpass

// SPDX-License-Identifier: BSL-1.0
#include "lib/session/hosts.hpp"

#include <mpi.h>

#include <algorithm>
#include <functional>
#include <string_view>

namespace railpass {

std::int64_t mark_of_host() {
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  PMPI_Get_processor_name(name, &length);
  return std::int64_t(std::hash<std::string_view>{}({name, std::size_t(length)}) >> 1);
}

host_counts count_hosts(std::span<std::int64_t> mark_of_rank) {
  std::ranges::sort(mark_of_rank);
  host_counts result{.num_hosts = 0};
  for (auto rest = mark_of_rank; !rest.empty(); ++result.num_hosts) {
    const auto here = std::ranges::upper_bound(rest, rest.front()) - rest.begin();
    result.ranks_per_host = std::max(result.ranks_per_host, int(here));
    rest = rest.subspan(std::size_t(here));
  }
  return result;
}

}  // namespace railpass

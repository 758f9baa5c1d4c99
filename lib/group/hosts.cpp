// SPDX-License-Identifier: BSL-1.0
#include "lib/group/hosts.hpp"

#include <mpi.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_map>

namespace railpass::internal {

std::int64_t mark_of_host() {
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  PMPI_Get_processor_name(name, &length);
  return std::int64_t(std::hash<std::string_view>{}({name, std::size_t(length)}) >> 1);
}

std::vector<host_run> find_hosts(std::span<const std::int64_t> mark_of_rank) {
  std::unordered_map<std::int64_t, int> hosts;
  std::vector<host_run> runs;
  for (std::size_t r = 0; r < mark_of_rank.size(); ++r) {
    const int host = hosts.try_emplace(mark_of_rank[r], int(hosts.size())).first->second;
    if (runs.empty() || runs.back().host != host) runs.push_back({int(r), host});
  }
  runs.shrink_to_fit();
  return runs;
}

std::shared_ptr<const placement> placement_on_hosts(std::span<const std::int64_t> mark_of_rank) {
  const std::vector<host_run> runs = find_hosts(mark_of_rank);
  const auto made = std::make_shared<placement>(std::int32_t(mark_of_rank.size()));
  made->set([&](std::int32_t rank) {
    return (std::ranges::upper_bound(runs, rank, {}, &host_run::first_rank) - 1)->host;
  });
  return made;
}

host_counts count_hosts(const placement& hosts, const rank_map& ranks, int num_ranks) {
  if (ranks.is_same() && num_ranks == hosts.num_ranks())
    return {.num_hosts = hosts.facts().num_nodes, .ranks_per_host = hosts.facts().most_ranks};
  std::unordered_map<int, int> ranks_on;
  for (int r = 0; r < num_ranks; ++r) ++ranks_on[hosts.node_of(ranks[r])];
  host_counts result{.num_hosts = int(ranks_on.size())};
  for (const auto& [host, count] : ranks_on)
    result.ranks_per_host = std::max(result.ranks_per_host, count);
  return result;
}

}  // namespace railpass::internal

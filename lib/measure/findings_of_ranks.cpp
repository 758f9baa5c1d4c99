// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/findings_of_ranks.hpp"

#include "lib/measure/handovers.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>

namespace railpass::internal::measure {

std::vector<finding> examine_hosts(const job& j) {
  const int node = j.node_of_rank[std::size_t(j.rank)];
  const int ranks_here = int(std::count(j.node_of_rank.begin(), j.node_of_rank.end(), node));
  std::optional<bool> copies;
  MPI_Comm ranks_of_host = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, node, j.rank, &ranks_of_host);
  if (ranks_here > 1) copies = can_copy_to_each_other(ranks_of_host);
  MPI_Comm_free(&ranks_of_host);
  const auto texts = gather_texts(
      j, to_json(examine_host(ranks_here, machine_marks(j.num_nodes()), copies)).dump());
  std::vector<finding> findings;
  for (int n = 0; j.rank == 0 && n < j.num_nodes(); ++n) {
    const auto first = std::find(j.node_of_rank.begin(), j.node_of_rank.end(), n);
    for (const auto& f : nlohmann::json::parse(texts[std::size_t(first - j.node_of_rank.begin())]))
      findings.push_back({.check = f["check"],
                          .host = j.hosts[std::size_t(n)],
                          .ok = f["ok"],
                          .message = f["message"]});
  }
  return findings;
}

}  // namespace railpass::internal::measure

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/schedule/nodes.hpp"
#include "support/named_hosts.hpp"

#include <vector>

namespace railpass::test {

/// Of the ranks of `comm`. Collective.
inline node_facts facts_of_hosts(MPI_Comm comm) {
  int rank = 0, num_ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(comm, &num_ranks);
  const char* const hosts = std::getenv("TEST_HOSTS");
  const int mine = hosts ? hosts[rank] : 0;
  std::vector<int> all(std::size_t(num_ranks), 0);
  MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, comm);
  return node_order(all).facts();
}

}  // namespace railpass::test

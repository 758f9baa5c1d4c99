// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/schedule/nodes.hpp"
#include "support/fake_cores.hpp"
#include "support/named_hosts.hpp"

#include <vector>

namespace railpass::test {

/// Facts about groups of the ranks of `comm`; this rank is in group `mine`. Collective.
inline node_facts facts_of_groups(MPI_Comm comm, int mine) {
  int num_ranks = 0;
  MPI_Comm_size(comm, &num_ranks);
  std::vector<int> all(std::size_t(num_ranks), 0);
  MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, comm);
  return node_order(all).facts();
}

/// Facts about hosts with the names in TEST_HOSTS.
inline node_facts facts_of_hosts(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* const hosts = std::getenv("TEST_HOSTS");
  return facts_of_groups(comm, hosts ? hosts[rank] : 0);
}

/// Facts about the caches in TEST_CACHES; without the variable all ranks share one cache.
inline node_facts facts_of_caches(MPI_Comm comm) { return facts_of_groups(comm, fake_cache()); }

}  // namespace railpass::test

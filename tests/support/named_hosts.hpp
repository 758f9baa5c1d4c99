// SPDX-License-Identifier: BSL-1.0
//
// As if each rank of MPI_COMM_WORLD were on the host that TEST_HOSTS has a digit for ("0110");
// without it they are where they are. Include in one file of a program: it replaces the MPI
// library's answer.
#pragma once

#include "railpass/schedule/nodes.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <vector>

extern "C" int PMPI_Get_processor_name(char* name, int* length) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* const hosts = std::getenv("TEST_HOSTS");
  if (!hosts || std::size_t(rank) >= std::strlen(hosts))
    return reinterpret_cast<decltype(&PMPI_Get_processor_name)>(
        dlsym(RTLD_NEXT, "PMPI_Get_processor_name"))(name, length);
  *length = std::snprintf(name, MPI_MAX_PROCESSOR_NAME, "host%c", hosts[rank]);
  return MPI_SUCCESS;
}

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

// SPDX-License-Identifier: BSL-1.0
//
// As if each rank of MPI_COMM_WORLD were on the host that TEST_HOSTS has a digit for ("0110");
// without it they are where they are. Include in one file of a program: it replaces the MPI
// library's answer.
#pragma once

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

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

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "collectives/algorithm.hpp"

#include <mpi.h>

#include <cstdint>

namespace railpass {

/// One call of a collective as the user made it: what crosses every boundary below the public API.
struct call {
  collective op = collective::broadcast;
  const void* send = nullptr;  ///< all_reduce: may be MPI_IN_PLACE; broadcast: unused
  void* receive = nullptr;     ///< broadcast: the buffer
  int count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op operation = MPI_OP_NULL;
  int root = 0;
  MPI_Comm comm = MPI_COMM_NULL;
  std::int64_t element_bytes = 0;  ///< packed

  std::int64_t bytes() const { return element_bytes * count; }
  bool in_place() const { return send == MPI_IN_PLACE; }
  bool is_reduction() const { return traits_of(op).reduces; }
};

/// The MPI library's own collective.
inline int run_native(const call& c) {
  switch (c.op) {
    case collective::broadcast:
      return PMPI_Bcast(c.receive, c.count, c.type, c.root, c.comm);
    case collective::all_reduce:
      return PMPI_Allreduce(c.send, c.receive, c.count, c.type, c.operation, c.comm);
    default:
      return MPI_ERR_INTERN;
  }
}

}  // namespace railpass

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/call/call.hpp"
#include "railpass/mpi.hpp"

namespace railpass::internal {

/// The call as a user would write it.
inline int call_railpass(const call& c, const call_options& o) {
  const call_side &s = c.send, &r = c.receive;
  void* const out = const_cast<void*>(r.memory);
  switch (c.op) {
    case collective::broadcast:
      return mpi::broadcast(out, int(r.count), r.type, c.root, c.comm, o);
    case collective::all_reduce:
      return mpi::all_reduce(s.memory, out, int(r.count), r.type, c.operation, c.comm, o);
    case collective::reduce:
      return mpi::reduce(s.memory, out, int(r.count), r.type, c.operation, c.root, c.comm, o);
    case collective::reduce_scatter:
      return mpi::reduce_scatter(s.memory, out, r.counts.as<int>(), r.type, c.operation, c.comm, o);
    case collective::reduce_scatter_block:
      return mpi::reduce_scatter_block(s.memory, out, int(r.count), r.type, c.operation, c.comm, o);
    case collective::gather:
      return mpi::gather(s.memory, int(s.count), s.type, out, int(r.count), r.type, c.root, c.comm,
                         o);
    case collective::gatherv:
      return mpi::gatherv(s.memory, int(s.count), s.type, out, r.counts.as<int>(),
                          r.displacements.as<int>(), r.type, c.root, c.comm, o);
    case collective::scatter:
      return mpi::scatter(s.memory, int(s.count), s.type, out, int(r.count), r.type, c.root, c.comm,
                          o);
    case collective::scatterv:
      return mpi::scatterv(s.memory, s.counts.as<int>(), s.displacements.as<int>(), s.type, out,
                           int(r.count), r.type, c.root, c.comm, o);
    case collective::all_gather:
      return mpi::all_gather(s.memory, int(s.count), s.type, out, int(r.count), r.type, c.comm, o);
    case collective::all_gatherv:
      return mpi::all_gatherv(s.memory, int(s.count), s.type, out, r.counts.as<int>(),
                              r.displacements.as<int>(), r.type, c.comm, o);
    case collective::all_to_all:
      return mpi::all_to_all(s.memory, int(s.count), s.type, out, int(r.count), r.type, c.comm, o);
    case collective::all_to_allv:
      return mpi::all_to_allv(s.memory, s.counts.as<int>(), s.displacements.as<int>(), s.type, out,
                              r.counts.as<int>(), r.displacements.as<int>(), r.type, c.comm, o);
    case collective::all_to_allw:
      return mpi::all_to_allw(s.memory, s.counts.as<int>(), s.displacements.as<int>(), s.types, out,
                              r.counts.as<int>(), r.displacements.as<int>(), r.types, c.comm, o);
    case collective::scan:
      return mpi::scan(s.memory, out, int(r.count), r.type, c.operation, c.comm, o);
    case collective::exscan:
      return mpi::exscan(s.memory, out, int(r.count), r.type, c.operation, c.comm, o);
    case collective::barrier:
      return mpi::barrier(c.comm, o);
  }
  return MPI_ERR_INTERN;
}

}  // namespace railpass::internal

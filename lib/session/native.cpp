// SPDX-License-Identifier: BSL-1.0
#include "lib/session/call.hpp"

namespace railpass {

int run_native(const call& c) {
  const call_side &s = c.send, &r = c.receive;
  // MPI's interfaces take what they receive into without const.
  void* const out = const_cast<void*>(r.memory);
  switch (c.op) {
    case collective::broadcast:
      return PMPI_Bcast(out, r.count, r.type, c.root, c.comm);
    case collective::all_reduce:
      return PMPI_Allreduce(s.memory, out, r.count, r.type, c.operation, c.comm);
    case collective::reduce:
      return PMPI_Reduce(s.memory, out, r.count, r.type, c.operation, c.root, c.comm);
    case collective::reduce_scatter:
      return PMPI_Reduce_scatter(s.memory, out, r.counts, r.type, c.operation, c.comm);
    case collective::reduce_scatter_block:
      return PMPI_Reduce_scatter_block(s.memory, out, r.count, r.type, c.operation, c.comm);
    case collective::gather:
      return PMPI_Gather(s.memory, s.count, s.type, out, r.count, r.type, c.root, c.comm);
    case collective::gatherv:
      return PMPI_Gatherv(s.memory, s.count, s.type, out, r.counts, r.displacements, r.type, c.root,
                          c.comm);
    case collective::scatter:
      return PMPI_Scatter(s.memory, s.count, s.type, out, r.count, r.type, c.root, c.comm);
    case collective::scatterv:
      return PMPI_Scatterv(s.memory, s.counts, s.displacements, s.type, out, r.count, r.type,
                           c.root, c.comm);
    case collective::all_gather:
      return PMPI_Allgather(s.memory, s.count, s.type, out, r.count, r.type, c.comm);
    case collective::all_gatherv:
      return PMPI_Allgatherv(s.memory, s.count, s.type, out, r.counts, r.displacements, r.type,
                             c.comm);
    case collective::all_to_all:
      return PMPI_Alltoall(s.memory, s.count, s.type, out, r.count, r.type, c.comm);
    case collective::all_to_allv:
      return PMPI_Alltoallv(s.memory, s.counts, s.displacements, s.type, out, r.counts,
                            r.displacements, r.type, c.comm);
    case collective::all_to_allw:
      return PMPI_Alltoallw(s.memory, s.counts, s.displacements, s.types, out, r.counts,
                            r.displacements, r.types, c.comm);
    case collective::scan:
      return PMPI_Scan(s.memory, out, r.count, r.type, c.operation, c.comm);
    case collective::exscan:
      return PMPI_Exscan(s.memory, out, r.count, r.type, c.operation, c.comm);
    case collective::barrier:
      return PMPI_Barrier(c.comm);
  }
  return MPI_ERR_INTERN;
}

}  // namespace railpass

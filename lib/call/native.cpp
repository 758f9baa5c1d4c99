// SPDX-License-Identifier: BSL-1.0
#include "lib/call/call.hpp"
#include "lib/call/inside.hpp"

namespace railpass::internal {

namespace {

#if MPI_VERSION >= 4
int run_native_large(const call& c) {
  const call_side &s = c.send, &r = c.receive;
  // MPI's interfaces take what they receive into without const.
  void* const out = const_cast<void*>(r.memory);
  switch (c.op) {
    case collective::broadcast:
      return PMPI_Bcast_c(out, r.count, r.type, c.root, c.comm);
    case collective::all_reduce:
      return PMPI_Allreduce_c(s.memory, out, r.count, r.type, c.operation, c.comm);
    case collective::reduce:
      return PMPI_Reduce_c(s.memory, out, r.count, r.type, c.operation, c.root, c.comm);
    case collective::reduce_scatter:
      return PMPI_Reduce_scatter_c(s.memory, out, r.counts.as<MPI_Count>(), r.type, c.operation,
                                   c.comm);
    case collective::reduce_scatter_block:
      return PMPI_Reduce_scatter_block_c(s.memory, out, r.count, r.type, c.operation, c.comm);
    case collective::gather:
      return PMPI_Gather_c(s.memory, s.count, s.type, out, r.count, r.type, c.root, c.comm);
    case collective::gatherv:
      return PMPI_Gatherv_c(s.memory, s.count, s.type, out, r.counts.as<MPI_Count>(),
                            r.displacements.as<MPI_Aint>(), r.type, c.root, c.comm);
    case collective::scatter:
      return PMPI_Scatter_c(s.memory, s.count, s.type, out, r.count, r.type, c.root, c.comm);
    case collective::scatterv:
      return PMPI_Scatterv_c(s.memory, s.counts.as<MPI_Count>(), s.displacements.as<MPI_Aint>(),
                             s.type, out, r.count, r.type, c.root, c.comm);
    case collective::all_gather:
      return PMPI_Allgather_c(s.memory, s.count, s.type, out, r.count, r.type, c.comm);
    case collective::all_gatherv:
      return PMPI_Allgatherv_c(s.memory, s.count, s.type, out, r.counts.as<MPI_Count>(),
                               r.displacements.as<MPI_Aint>(), r.type, c.comm);
    case collective::all_to_all:
      return PMPI_Alltoall_c(s.memory, s.count, s.type, out, r.count, r.type, c.comm);
    case collective::all_to_allv:
      return PMPI_Alltoallv_c(s.memory, s.counts.as<MPI_Count>(), s.displacements.as<MPI_Aint>(),
                              s.type, out, r.counts.as<MPI_Count>(), r.displacements.as<MPI_Aint>(),
                              r.type, c.comm);
    case collective::all_to_allw:
      return PMPI_Alltoallw_c(s.memory, s.counts.as<MPI_Count>(), s.displacements.as<MPI_Aint>(),
                              s.types, out, r.counts.as<MPI_Count>(),
                              r.displacements.as<MPI_Aint>(), r.types, c.comm);
    case collective::scan:
      return PMPI_Scan_c(s.memory, out, r.count, r.type, c.operation, c.comm);
    case collective::exscan:
      return PMPI_Exscan_c(s.memory, out, r.count, r.type, c.operation, c.comm);
    case collective::barrier:
      return PMPI_Barrier(c.comm);
  }
  return MPI_ERR_INTERN;
}
#endif

}  // namespace

[[gnu::hot]] int run_native(const call& c) {
  inside::hands_on_users_call();
#if MPI_VERSION >= 4
  if (c.is_large) return run_native_large(c);
#endif
  const call_side &s = c.send, &r = c.receive;
  // MPI's interfaces take what they receive into without const.
  void* const out = const_cast<void*>(r.memory);
  switch (c.op) {
    case collective::broadcast:
      return PMPI_Bcast(out, int(r.count), r.type, c.root, c.comm);
    case collective::all_reduce:
      return PMPI_Allreduce(s.memory, out, int(r.count), r.type, c.operation, c.comm);
    case collective::reduce:
      return PMPI_Reduce(s.memory, out, int(r.count), r.type, c.operation, c.root, c.comm);
    case collective::reduce_scatter:
      return PMPI_Reduce_scatter(s.memory, out, r.counts.as<int>(), r.type, c.operation, c.comm);
    case collective::reduce_scatter_block:
      return PMPI_Reduce_scatter_block(s.memory, out, int(r.count), r.type, c.operation, c.comm);
    case collective::gather:
      return PMPI_Gather(s.memory, int(s.count), s.type, out, int(r.count), r.type, c.root, c.comm);
    case collective::gatherv:
      return PMPI_Gatherv(s.memory, int(s.count), s.type, out, r.counts.as<int>(),
                          r.displacements.as<int>(), r.type, c.root, c.comm);
    case collective::scatter:
      return PMPI_Scatter(s.memory, int(s.count), s.type, out, int(r.count), r.type, c.root,
                          c.comm);
    case collective::scatterv:
      return PMPI_Scatterv(s.memory, s.counts.as<int>(), s.displacements.as<int>(), s.type, out,
                           int(r.count), r.type, c.root, c.comm);
    case collective::all_gather:
      return PMPI_Allgather(s.memory, int(s.count), s.type, out, int(r.count), r.type, c.comm);
    case collective::all_gatherv:
      return PMPI_Allgatherv(s.memory, int(s.count), s.type, out, r.counts.as<int>(),
                             r.displacements.as<int>(), r.type, c.comm);
    case collective::all_to_all:
      return PMPI_Alltoall(s.memory, int(s.count), s.type, out, int(r.count), r.type, c.comm);
    case collective::all_to_allv:
      return PMPI_Alltoallv(s.memory, s.counts.as<int>(), s.displacements.as<int>(), s.type, out,
                            r.counts.as<int>(), r.displacements.as<int>(), r.type, c.comm);
    case collective::all_to_allw:
      return PMPI_Alltoallw(s.memory, s.counts.as<int>(), s.displacements.as<int>(), s.types, out,
                            r.counts.as<int>(), r.displacements.as<int>(), r.types, c.comm);
    case collective::scan:
      return PMPI_Scan(s.memory, out, int(r.count), r.type, c.operation, c.comm);
    case collective::exscan:
      return PMPI_Exscan(s.memory, out, int(r.count), r.type, c.operation, c.comm);
    case collective::barrier:
      return PMPI_Barrier(c.comm);
  }
  return MPI_ERR_INTERN;
}

}  // namespace railpass::internal

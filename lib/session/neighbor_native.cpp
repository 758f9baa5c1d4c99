// SPDX-License-Identifier: BSL-1.0
#include "lib/session/neighbor_call.hpp"

namespace railpass {

namespace {

#if MPI_VERSION >= 4
int run_native_large(const neighbor_call& c) {
  const call_side &s = c.send, &r = c.receive;
  void* const out = const_cast<void*>(r.memory);
  switch (c.op) {
    case neighbor_function::all_to_all:
      return PMPI_Neighbor_alltoall_c(s.memory, s.count, s.type, out, r.count, r.type, c.comm);
    case neighbor_function::all_to_allv:
      return PMPI_Neighbor_alltoallv_c(
          s.memory, s.counts.as<MPI_Count>(), s.displacements.as<MPI_Aint>(), s.type, out,
          r.counts.as<MPI_Count>(), r.displacements.as<MPI_Aint>(), r.type, c.comm);
    case neighbor_function::all_to_allw:
      return PMPI_Neighbor_alltoallw_c(
          s.memory, s.counts.as<MPI_Count>(), s.displacements.as<MPI_Aint>(), s.types, out,
          r.counts.as<MPI_Count>(), r.displacements.as<MPI_Aint>(), r.types, c.comm);
    case neighbor_function::all_gather:
      return PMPI_Neighbor_allgather_c(s.memory, s.count, s.type, out, r.count, r.type, c.comm);
    case neighbor_function::all_gatherv:
      return PMPI_Neighbor_allgatherv_c(s.memory, s.count, s.type, out, r.counts.as<MPI_Count>(),
                                        r.displacements.as<MPI_Aint>(), r.type, c.comm);
  }
  return MPI_ERR_INTERN;
}

int start_native_large(const neighbor_call& c, MPI_Request* request) {
  const call_side &s = c.send, &r = c.receive;
  void* const out = const_cast<void*>(r.memory);
  switch (c.op) {
    case neighbor_function::all_to_all:
      return PMPI_Ineighbor_alltoall_c(s.memory, s.count, s.type, out, r.count, r.type, c.comm,
                                       request);
    case neighbor_function::all_to_allv:
      return PMPI_Ineighbor_alltoallv_c(
          s.memory, s.counts.as<MPI_Count>(), s.displacements.as<MPI_Aint>(), s.type, out,
          r.counts.as<MPI_Count>(), r.displacements.as<MPI_Aint>(), r.type, c.comm, request);
    case neighbor_function::all_to_allw:
      return PMPI_Ineighbor_alltoallw_c(
          s.memory, s.counts.as<MPI_Count>(), s.displacements.as<MPI_Aint>(), s.types, out,
          r.counts.as<MPI_Count>(), r.displacements.as<MPI_Aint>(), r.types, c.comm, request);
    case neighbor_function::all_gather:
      return PMPI_Ineighbor_allgather_c(s.memory, s.count, s.type, out, r.count, r.type, c.comm,
                                        request);
    case neighbor_function::all_gatherv:
      return PMPI_Ineighbor_allgatherv_c(s.memory, s.count, s.type, out, r.counts.as<MPI_Count>(),
                                         r.displacements.as<MPI_Aint>(), r.type, c.comm, request);
  }
  return MPI_ERR_INTERN;
}
#endif

}  // namespace

int run_native(const neighbor_call& c) {
#if MPI_VERSION >= 4
  if (c.is_large) return run_native_large(c);
#endif
  const call_side &s = c.send, &r = c.receive;
  void* const out = const_cast<void*>(r.memory);
  switch (c.op) {
    case neighbor_function::all_to_all:
      return PMPI_Neighbor_alltoall(s.memory, int(s.count), s.type, out, int(r.count), r.type,
                                    c.comm);
    case neighbor_function::all_to_allv:
      return PMPI_Neighbor_alltoallv(s.memory, s.counts.as<int>(), s.displacements.as<int>(),
                                     s.type, out, r.counts.as<int>(), r.displacements.as<int>(),
                                     r.type, c.comm);
    case neighbor_function::all_to_allw:
      return PMPI_Neighbor_alltoallw(s.memory, s.counts.as<int>(), s.displacements.as<MPI_Aint>(),
                                     s.types, out, r.counts.as<int>(),
                                     r.displacements.as<MPI_Aint>(), r.types, c.comm);
    case neighbor_function::all_gather:
      return PMPI_Neighbor_allgather(s.memory, int(s.count), s.type, out, int(r.count), r.type,
                                     c.comm);
    case neighbor_function::all_gatherv:
      return PMPI_Neighbor_allgatherv(s.memory, int(s.count), s.type, out, r.counts.as<int>(),
                                      r.displacements.as<int>(), r.type, c.comm);
  }
  return MPI_ERR_INTERN;
}

int start_native(const neighbor_call& c, MPI_Request* request) {
#if MPI_VERSION >= 4
  if (c.is_large) return start_native_large(c, request);
#endif
  const call_side &s = c.send, &r = c.receive;
  void* const out = const_cast<void*>(r.memory);
  switch (c.op) {
    case neighbor_function::all_to_all:
      return PMPI_Ineighbor_alltoall(s.memory, int(s.count), s.type, out, int(r.count), r.type,
                                     c.comm, request);
    case neighbor_function::all_to_allv:
      return PMPI_Ineighbor_alltoallv(s.memory, s.counts.as<int>(), s.displacements.as<int>(),
                                      s.type, out, r.counts.as<int>(), r.displacements.as<int>(),
                                      r.type, c.comm, request);
    case neighbor_function::all_to_allw:
      return PMPI_Ineighbor_alltoallw(s.memory, s.counts.as<int>(), s.displacements.as<MPI_Aint>(),
                                      s.types, out, r.counts.as<int>(),
                                      r.displacements.as<MPI_Aint>(), r.types, c.comm, request);
    case neighbor_function::all_gather:
      return PMPI_Ineighbor_allgather(s.memory, int(s.count), s.type, out, int(r.count), r.type,
                                      c.comm, request);
    case neighbor_function::all_gatherv:
      return PMPI_Ineighbor_allgatherv(s.memory, int(s.count), s.type, out, r.counts.as<int>(),
                                       r.displacements.as<int>(), r.type, c.comm, request);
  }
  return MPI_ERR_INTERN;
}

}  // namespace railpass

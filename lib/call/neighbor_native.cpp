// SPDX-License-Identifier: BSL-1.0
#include "lib/call/inside.hpp"
#include "lib/call/neighbor_call.hpp"

namespace railpass::internal {

namespace {

// MPI's functions of one kind: with ints or large counts (`Count` and `Displacement`, a
// displacement in elements), blocking or, with a request at the end, begun only.
template <class Count, class Displacement, class... More>
struct functions {
  using equal = int (*)(const void*, Count, MPI_Datatype, void*, Count, MPI_Datatype, MPI_Comm,
                        More...);
  equal all_to_all;
  int (*all_to_allv)(const void*, const Count*, const Displacement*, MPI_Datatype, void*,
                     const Count*, const Displacement*, MPI_Datatype, MPI_Comm, More...);
  int (*all_to_allw)(const void*, const Count*, const MPI_Aint*, const MPI_Datatype*, void*,
                     const Count*, const MPI_Aint*, const MPI_Datatype*, MPI_Comm, More...);
  equal all_gather;
  int (*all_gatherv)(const void*, Count, MPI_Datatype, void*, const Count*, const Displacement*,
                     MPI_Datatype, MPI_Comm, More...);

  int run(const neighbor_call& c, More... more) const {
    const call_side &s = c.send, &r = c.receive;
    void* const out = const_cast<void*>(r.memory);
    switch (c.op) {
      case neighbor_function::all_to_all:
        return all_to_all(s.memory, Count(s.count), s.type, out, Count(r.count), r.type, c.comm,
                          more...);
      case neighbor_function::all_to_allv:
        return all_to_allv(s.memory, s.counts.template as<Count>(),
                           s.displacements.template as<Displacement>(), s.type, out,
                           r.counts.template as<Count>(),
                           r.displacements.template as<Displacement>(), r.type, c.comm, more...);
      case neighbor_function::all_to_allw:
        return all_to_allw(s.memory, s.counts.template as<Count>(),
                           s.displacements.template as<MPI_Aint>(), s.types, out,
                           r.counts.template as<Count>(), r.displacements.template as<MPI_Aint>(),
                           r.types, c.comm, more...);
      case neighbor_function::all_gather:
        return all_gather(s.memory, Count(s.count), s.type, out, Count(r.count), r.type, c.comm,
                          more...);
      case neighbor_function::all_gatherv:
        return all_gatherv(s.memory, Count(s.count), s.type, out, r.counts.template as<Count>(),
                           r.displacements.template as<Displacement>(), r.type, c.comm, more...);
    }
    return MPI_ERR_INTERN;
  }
};

constexpr functions<int, int> blocking{PMPI_Neighbor_alltoall, PMPI_Neighbor_alltoallv,
                                       PMPI_Neighbor_alltoallw, PMPI_Neighbor_allgather,
                                       PMPI_Neighbor_allgatherv};
constexpr functions<int, int, MPI_Request*> begun{
    PMPI_Ineighbor_alltoall, PMPI_Ineighbor_alltoallv, PMPI_Ineighbor_alltoallw,
    PMPI_Ineighbor_allgather, PMPI_Ineighbor_allgatherv};
#if MPI_VERSION >= 4
constexpr functions<MPI_Count, MPI_Aint> blocking_large{
    PMPI_Neighbor_alltoall_c, PMPI_Neighbor_alltoallv_c, PMPI_Neighbor_alltoallw_c,
    PMPI_Neighbor_allgather_c, PMPI_Neighbor_allgatherv_c};
constexpr functions<MPI_Count, MPI_Aint, MPI_Request*> begun_large{
    PMPI_Ineighbor_alltoall_c, PMPI_Ineighbor_alltoallv_c, PMPI_Ineighbor_alltoallw_c,
    PMPI_Ineighbor_allgather_c, PMPI_Ineighbor_allgatherv_c};
#endif

}  // namespace

int run_native(const neighbor_call& c) {
  inside::hands_on_users_call();
#if MPI_VERSION >= 4
  if (c.is_large) return blocking_large.run(c);
#endif
  return blocking.run(c);
}

int start_native(const neighbor_call& c, MPI_Request* request) {
#if MPI_VERSION >= 4
  if (c.is_large) return begun_large.run(c, request);
#endif
  return begun.run(c, request);
}

}  // namespace railpass::internal

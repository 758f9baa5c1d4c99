// SPDX-License-Identifier: BSL-1.0
#include "lib/c/calls.hpp"
#include "railpass/mpi.hpp"
#include "railpass/railpass.h"

#include <cstdio>

namespace railpass::internal::c {

namespace {
thread_local char last_error[1024] = "";
}

void remember_error(const char* text) noexcept {
  std::snprintf(last_error, sizeof last_error, "%s", text);
}

}  // namespace railpass::internal::c

using namespace railpass;
using internal::c::code_of, internal::c::require, internal::c::comm_of;

const char* railpass_error_text(void) { return internal::c::last_error; }

int railpass_broadcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return mpi::broadcast(buffer, count, type, root, comm);
}
int railpass_reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                    int root, MPI_Comm comm) {
  return mpi::reduce(send, receive, count, type, op, root, comm);
}
int railpass_all_reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                        MPI_Comm comm) {
  return mpi::all_reduce(send, receive, count, type, op, comm);
}
int railpass_reduce_scatter(const void* send, void* receive, const int* counts, MPI_Datatype type,
                            MPI_Op op, MPI_Comm comm) {
  return mpi::reduce_scatter(send, receive, counts, type, op, comm);
}
int railpass_reduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type,
                                  MPI_Op op, MPI_Comm comm) {
  return mpi::reduce_scatter_block(send, receive, count, type, op, comm);
}
int railpass_gather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                    int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm) {
  return mpi::gather(send, send_count, send_type, receive, receive_count, receive_type, root, comm);
}
int railpass_gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                     const int* receive_counts, const int* displacements, MPI_Datatype receive_type,
                     int root, MPI_Comm comm) {
  return mpi::gatherv(send, send_count, send_type, receive, receive_counts, displacements,
                      receive_type, root, comm);
}
int railpass_scatter(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                     int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm) {
  return mpi::scatter(send, send_count, send_type, receive, receive_count, receive_type, root,
                      comm);
}
int railpass_scatterv(const void* send, const int* send_counts, const int* displacements,
                      MPI_Datatype send_type, void* receive, int receive_count,
                      MPI_Datatype receive_type, int root, MPI_Comm comm) {
  return mpi::scatterv(send, send_counts, displacements, send_type, receive, receive_count,
                       receive_type, root, comm);
}
int railpass_all_gather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                        int receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
  return mpi::all_gather(send, send_count, send_type, receive, receive_count, receive_type, comm);
}
int railpass_all_gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                         const int* receive_counts, const int* displacements,
                         MPI_Datatype receive_type, MPI_Comm comm) {
  return mpi::all_gatherv(send, send_count, send_type, receive, receive_counts, displacements,
                          receive_type, comm);
}
int railpass_all_to_all(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                        int receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
  return mpi::all_to_all(send, send_count, send_type, receive, receive_count, receive_type, comm);
}
int railpass_all_to_allv(const void* send, const int* send_counts, const int* send_displacements,
                         MPI_Datatype send_type, void* receive, const int* receive_counts,
                         const int* receive_displacements, MPI_Datatype receive_type,
                         MPI_Comm comm) {
  return mpi::all_to_allv(send, send_counts, send_displacements, send_type, receive, receive_counts,
                          receive_displacements, receive_type, comm);
}
int railpass_all_to_allw(const void* send, const int* send_counts, const int* send_displacements,
                         const MPI_Datatype* send_types, void* receive, const int* receive_counts,
                         const int* receive_displacements, const MPI_Datatype* receive_types,
                         MPI_Comm comm) {
  return mpi::all_to_allw(send, send_counts, send_displacements, send_types, receive,
                          receive_counts, receive_displacements, receive_types, comm);
}
int railpass_scan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
  return mpi::scan(send, receive, count, type, op, comm);
}
int railpass_exscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm) {
  return mpi::exscan(send, receive, count, type, op, comm);
}
int railpass_barrier(MPI_Comm comm) { return mpi::barrier(comm); }

int railpass_neighbor_all_to_all(const void* send, int send_count, MPI_Datatype send_type,
                                 void* receive, int receive_count, MPI_Datatype receive_type,
                                 MPI_Comm comm) {
  return mpi::neighbor_all_to_all(send, send_count, send_type, receive, receive_count, receive_type,
                                  comm);
}
int railpass_neighbor_all_to_allv(const void* send, const int* send_counts,
                                  const int* send_displacements, MPI_Datatype send_type,
                                  void* receive, const int* receive_counts,
                                  const int* receive_displacements, MPI_Datatype receive_type,
                                  MPI_Comm comm) {
  return mpi::neighbor_all_to_allv(send, send_counts, send_displacements, send_type, receive,
                                   receive_counts, receive_displacements, receive_type, comm);
}
int railpass_neighbor_all_to_allw(const void* send, const int* send_counts,
                                  const MPI_Aint* send_displacements,
                                  const MPI_Datatype* send_types, void* receive,
                                  const int* receive_counts, const MPI_Aint* receive_displacements,
                                  const MPI_Datatype* receive_types, MPI_Comm comm) {
  return mpi::neighbor_all_to_allw(send, send_counts, send_displacements, send_types, receive,
                                   receive_counts, receive_displacements, receive_types, comm);
}
int railpass_neighbor_all_gather(const void* send, int send_count, MPI_Datatype send_type,
                                 void* receive, int receive_count, MPI_Datatype receive_type,
                                 MPI_Comm comm) {
  return mpi::neighbor_all_gather(send, send_count, send_type, receive, receive_count, receive_type,
                                  comm);
}
int railpass_neighbor_all_gatherv(const void* send, int send_count, MPI_Datatype send_type,
                                  void* receive, const int* receive_counts,
                                  const int* displacements, MPI_Datatype receive_type,
                                  MPI_Comm comm) {
  return mpi::neighbor_all_gatherv(send, send_count, send_type, receive, receive_counts,
                                   displacements, receive_type, comm);
}

int railpass_configure(MPI_Comm comm, const char* setting, const char* value) {
  return code_of([&] {
    require(setting && value, "railpass_configure: expected a setting and a value");
    mpi::configure(comm, setting, value);
  });
}
int railpass_configure_f(railpass_fint comm, const char* setting, const char* value) {
  return railpass_configure(comm_of(comm), setting, value);
}
int railpass_start_tuning(MPI_Comm comm) {
  int code = MPI_SUCCESS;
  const int problem = code_of([&] { code = mpi::start_tuning(comm); });
  if (code == MPI_ERR_OTHER)
    internal::c::remember_error(
        "railpass_start_tuning: the communicator is not tuned: its ranks have different settings "
        "and RAILPASS_STRICT is on, or MPI failed; see the log of railpass");
  return problem == MPI_SUCCESS ? code : problem;
}
int railpass_start_tuning_f(railpass_fint comm) { return railpass_start_tuning(comm_of(comm)); }

int railpass_dump_statistics(const char* path) {
  return code_of([&] {
    require(path, "railpass_dump_statistics: expected a path");
    mpi::dump_statistics(path);
  });
}

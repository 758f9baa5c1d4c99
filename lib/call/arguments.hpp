// SPDX-License-Identifier: BSL-1.0
//
// From the arguments of MPI's collectives to a call: for the calls of railpass/mpi.hpp, and for the
// preload library, which has the large-count forms (MPI 4.0), too.
#pragma once

#include "lib/call/call.hpp"
#include "lib/call/neighbor_call.hpp"

namespace railpass::internal::arguments_of {

// Sets members one by one. For an aggregate with some named members, GCC clears the aggregate by an
// instruction that takes as long as a third of the rest of a converged call.

inline call broadcast(void* buffer, std::int64_t count, MPI_Datatype type, int root,
                      MPI_Comm comm) {
  call c;
  c.op = collective::broadcast;
  c.receive = {.memory = buffer, .count = count, .type = type};
  c.root = root;
  c.comm = comm;
  return c;
}

inline call all_reduce(const void* send, void* receive, std::int64_t count, MPI_Datatype type,
                       MPI_Op op, MPI_Comm comm) {
  call c;
  c.op = collective::all_reduce;
  c.send = {.memory = send};
  c.receive = {.memory = receive, .count = count, .type = type};
  c.operation = op;
  c.comm = comm;
  return c;
}

inline call reduce(const void* send, void* receive, std::int64_t count, MPI_Datatype type,
                   MPI_Op op, int root, MPI_Comm comm) {
  call c;
  c.op = collective::reduce;
  c.send = {.memory = send};
  c.receive = {.memory = receive, .count = count, .type = type};
  c.operation = op;
  c.root = root;
  c.comm = comm;
  return c;
}

inline call reduce_scatter(const void* send, void* receive, const rank_values& counts,
                           MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  call c;
  c.op = collective::reduce_scatter;
  c.send = {.memory = send};
  c.receive = {.memory = receive, .type = type, .counts = counts};
  c.operation = op;
  c.comm = comm;
  return c;
}

inline call reduce_scatter_block(const void* send, void* receive, std::int64_t count,
                                 MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  call c;
  c.op = collective::reduce_scatter_block;
  c.send = {.memory = send};
  c.receive = {.memory = receive, .count = count, .type = type};
  c.operation = op;
  c.comm = comm;
  return c;
}

inline call gather(const void* send, std::int64_t send_count, MPI_Datatype send_type, void* receive,
                   std::int64_t receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm) {
  call c;
  c.op = collective::gather;
  c.send = {.memory = send, .count = send_count, .type = send_type};
  c.receive = {.memory = receive, .count = receive_count, .type = receive_type};
  c.root = root;
  c.comm = comm;
  return c;
}

inline call gatherv(const void* send, std::int64_t send_count, MPI_Datatype send_type,
                    void* receive, const rank_values& receive_counts,
                    const rank_values& displacements, MPI_Datatype receive_type, int root,
                    MPI_Comm comm) {
  call c;
  c.op = collective::gatherv;
  c.send = {.memory = send, .count = send_count, .type = send_type};
  c.receive = {.memory = receive,
               .type = receive_type,
               .counts = receive_counts,
               .displacements = displacements};
  c.root = root;
  c.comm = comm;
  return c;
}

inline call scatter(const void* send, std::int64_t send_count, MPI_Datatype send_type,
                    void* receive, std::int64_t receive_count, MPI_Datatype receive_type, int root,
                    MPI_Comm comm) {
  call c;
  c.op = collective::scatter;
  c.send = {.memory = send, .count = send_count, .type = send_type};
  c.receive = {.memory = receive, .count = receive_count, .type = receive_type};
  c.root = root;
  c.comm = comm;
  return c;
}

inline call scatterv(const void* send, const rank_values& send_counts,
                     const rank_values& displacements, MPI_Datatype send_type, void* receive,
                     std::int64_t receive_count, MPI_Datatype receive_type, int root,
                     MPI_Comm comm) {
  call c;
  c.op = collective::scatterv;
  c.send = {
      .memory = send, .type = send_type, .counts = send_counts, .displacements = displacements};
  c.receive = {.memory = receive, .count = receive_count, .type = receive_type};
  c.root = root;
  c.comm = comm;
  return c;
}

inline call all_gather(const void* send, std::int64_t send_count, MPI_Datatype send_type,
                       void* receive, std::int64_t receive_count, MPI_Datatype receive_type,
                       MPI_Comm comm) {
  call c;
  c.op = collective::all_gather;
  c.send = {.memory = send, .count = send_count, .type = send_type};
  c.receive = {.memory = receive, .count = receive_count, .type = receive_type};
  c.comm = comm;
  return c;
}

inline call all_gatherv(const void* send, std::int64_t send_count, MPI_Datatype send_type,
                        void* receive, const rank_values& receive_counts,
                        const rank_values& displacements, MPI_Datatype receive_type,
                        MPI_Comm comm) {
  call c;
  c.op = collective::all_gatherv;
  c.send = {.memory = send, .count = send_count, .type = send_type};
  c.receive = {.memory = receive,
               .type = receive_type,
               .counts = receive_counts,
               .displacements = displacements};
  c.comm = comm;
  return c;
}

inline call all_to_all(const void* send, std::int64_t send_count, MPI_Datatype send_type,
                       void* receive, std::int64_t receive_count, MPI_Datatype receive_type,
                       MPI_Comm comm) {
  call c;
  c.op = collective::all_to_all;
  c.send = {.memory = send, .count = send_count, .type = send_type};
  c.receive = {.memory = receive, .count = receive_count, .type = receive_type};
  c.comm = comm;
  return c;
}

inline call all_to_allv(const void* send, const rank_values& send_counts,
                        const rank_values& send_displacements, MPI_Datatype send_type,
                        void* receive, const rank_values& receive_counts,
                        const rank_values& receive_displacements, MPI_Datatype receive_type,
                        MPI_Comm comm) {
  call c;
  c.op = collective::all_to_allv;
  c.send = {.memory = send,
            .type = send_type,
            .counts = send_counts,
            .displacements = send_displacements};
  c.receive = {.memory = receive,
               .type = receive_type,
               .counts = receive_counts,
               .displacements = receive_displacements};
  c.comm = comm;
  return c;
}

inline call all_to_allw(const void* send, const rank_values& send_counts,
                        const rank_values& send_displacements, const MPI_Datatype* send_types,
                        void* receive, const rank_values& receive_counts,
                        const rank_values& receive_displacements, const MPI_Datatype* receive_types,
                        MPI_Comm comm) {
  call c;
  c.op = collective::all_to_allw;
  c.send = {.memory = send,
            .counts = send_counts,
            .displacements = send_displacements,
            .types = send_types};
  c.receive = {.memory = receive,
               .counts = receive_counts,
               .displacements = receive_displacements,
               .types = receive_types};
  c.comm = comm;
  return c;
}

inline call scan(const void* send, void* receive, std::int64_t count, MPI_Datatype type, MPI_Op op,
                 MPI_Comm comm) {
  call c;
  c.op = collective::scan;
  c.send = {.memory = send};
  c.receive = {.memory = receive, .count = count, .type = type};
  c.operation = op;
  c.comm = comm;
  return c;
}

inline call exscan(const void* send, void* receive, std::int64_t count, MPI_Datatype type,
                   MPI_Op op, MPI_Comm comm) {
  call c;
  c.op = collective::exscan;
  c.send = {.memory = send};
  c.receive = {.memory = receive, .count = count, .type = type};
  c.operation = op;
  c.comm = comm;
  return c;
}

inline call barrier(MPI_Comm comm) {
  call c;
  c.op = collective::barrier;
  c.comm = comm;
  return c;
}

// ---- between neighbours of a topology: the arguments of the collective between all ranks

inline neighbor_call between_neighbors(neighbor_function op, const call& same) {
  neighbor_call c;
  c.op = op;
  c.send = same.send;
  c.receive = same.receive;
  c.comm = same.comm;
  return c;
}

inline neighbor_call neighbor_all_to_all(const void* send, std::int64_t send_count,
                                         MPI_Datatype send_type, void* receive,
                                         std::int64_t receive_count, MPI_Datatype receive_type,
                                         MPI_Comm comm) {
  return between_neighbors(
      neighbor_function::all_to_all,
      all_to_all(send, send_count, send_type, receive, receive_count, receive_type, comm));
}

inline neighbor_call neighbor_all_to_allv(const void* send, const rank_values& send_counts,
                                          const rank_values& send_displacements,
                                          MPI_Datatype send_type, void* receive,
                                          const rank_values& receive_counts,
                                          const rank_values& receive_displacements,
                                          MPI_Datatype receive_type, MPI_Comm comm) {
  return between_neighbors(neighbor_function::all_to_allv,
                           all_to_allv(send, send_counts, send_displacements, send_type, receive,
                                       receive_counts, receive_displacements, receive_type, comm));
}

inline neighbor_call neighbor_all_to_allw(const void* send, const rank_values& send_counts,
                                          const rank_values& send_displacements,
                                          const MPI_Datatype* send_types, void* receive,
                                          const rank_values& receive_counts,
                                          const rank_values& receive_displacements,
                                          const MPI_Datatype* receive_types, MPI_Comm comm) {
  return between_neighbors(neighbor_function::all_to_allw,
                           all_to_allw(send, send_counts, send_displacements, send_types, receive,
                                       receive_counts, receive_displacements, receive_types, comm));
}

inline neighbor_call neighbor_all_gather(const void* send, std::int64_t send_count,
                                         MPI_Datatype send_type, void* receive,
                                         std::int64_t receive_count, MPI_Datatype receive_type,
                                         MPI_Comm comm) {
  return between_neighbors(
      neighbor_function::all_gather,
      all_gather(send, send_count, send_type, receive, receive_count, receive_type, comm));
}

inline neighbor_call neighbor_all_gatherv(const void* send, std::int64_t send_count,
                                          MPI_Datatype send_type, void* receive,
                                          const rank_values& receive_counts,
                                          const rank_values& displacements,
                                          MPI_Datatype receive_type, MPI_Comm comm) {
  return between_neighbors(neighbor_function::all_gatherv,
                           all_gatherv(send, send_count, send_type, receive, receive_counts,
                                       displacements, receive_type, comm));
}

}  // namespace railpass::internal::arguments_of

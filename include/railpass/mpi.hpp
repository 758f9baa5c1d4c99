// SPDX-License-Identifier: BSL-1.0
//
// Tuned collectives with MPI's signatures. Everything else (the Boost.MPI facade, the preload
// library) is thin over this. All names are in namespace railpass::mpi.
//
// Arguments, semantics and error codes are the same as in the matching MPI call (MPI 4.0,
// chapter 6); errors go to the communicator's error handler and are returned if that returns.
// Tuning trouble never fails a call: the MPI library's own collective runs then, on all ranks. A
// rank without the memory that an arm needs says MPI_ERR_NO_MEM before it sends anything; as after
// any error of a collective, what the other ranks do with theirs is undefined.
//
// Errors that only railpass can cause have an MPI error class of their own, and MPI_Error_string
// says what they are; before the error handler is called, a line on standard error names
// communicator, collective and reason. Where the ranks do not make the same call (their lengths,
// say, differ) it is MPI_ERR_TRUNCATE, on all ranks that find out or wait in a call of the
// communicator; after that its calls are the MPI library's.
//
// Calls on inter-communicators and on communicators of one rank always go to the MPI library.
//
// All ranks of a communicator must call the same collectives through railpass: a rank that calls
// MPI_Bcast where another calls railpass::mpi::broadcast does not meet it.
#pragma once

#include "railpass/base/error.hpp"
#include "railpass/base/log.hpp"
#include "railpass/options.hpp"

#include <mpi.h>

#include <string>
#include <string_view>

namespace railpass::mpi {

/// MPI_Bcast. Collective over `comm`.
int broadcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
              const call_options& options = {});

/// MPI_Allreduce. Collective over `comm`; `send` may be MPI_IN_PLACE (on all ranks or on none).
/// All ranks obtain bitwise the same result.
int all_reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm, const call_options& options = {});

/// MPI_Reduce. Collective over `comm`; at the root `send` may be MPI_IN_PLACE, elsewhere `receive`
/// is not looked at.
int reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root,
           MPI_Comm comm, const call_options& options = {});

/// MPI_Reduce_scatter: `counts` elements for each rank. Collective over `comm`; `send` may be
/// MPI_IN_PLACE (on all ranks or on none).
int reduce_scatter(const void* send, void* receive, const int* counts, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, const call_options& options = {});

/// MPI_Reduce_scatter_block: `count` elements for each rank. Otherwise as reduce_scatter.
int reduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm, const call_options& options = {});

/// MPI_Gather. Collective over `comm`; at the root `send` may be MPI_IN_PLACE.
int gather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
           int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm,
           const call_options& options = {});

/// MPI_Gatherv; displacements are in elements. Otherwise as gather.
int gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
            const int* receive_counts, const int* displacements, MPI_Datatype receive_type,
            int root, MPI_Comm comm, const call_options& options = {});

/// MPI_Scatter. Collective over `comm`; at the root `receive` may be MPI_IN_PLACE.
int scatter(const void* send, int send_count, MPI_Datatype send_type, void* receive,
            int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm,
            const call_options& options = {});

/// MPI_Scatterv; displacements are in elements. Otherwise as scatter.
int scatterv(const void* send, const int* send_counts, const int* displacements,
             MPI_Datatype send_type, void* receive, int receive_count, MPI_Datatype receive_type,
             int root, MPI_Comm comm, const call_options& options = {});

/// MPI_Allgather. Collective over `comm`; `send` may be MPI_IN_PLACE (on all ranks or on none).
int all_gather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
               int receive_count, MPI_Datatype receive_type, MPI_Comm comm,
               const call_options& options = {});

/// MPI_Allgatherv; displacements are in elements. Otherwise as all_gather.
int all_gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                const int* receive_counts, const int* displacements, MPI_Datatype receive_type,
                MPI_Comm comm, const call_options& options = {});

/// MPI_Alltoall. Collective over `comm`; `send` may be MPI_IN_PLACE (on all ranks or on none).
int all_to_all(const void* send, int send_count, MPI_Datatype send_type, void* receive,
               int receive_count, MPI_Datatype receive_type, MPI_Comm comm,
               const call_options& options = {});

/// MPI_Alltoallv; displacements are in elements. Otherwise as all_to_all; calls in place always go
/// to the MPI library.
int all_to_allv(const void* send, const int* send_counts, const int* send_displacements,
                MPI_Datatype send_type, void* receive, const int* receive_counts,
                const int* receive_displacements, MPI_Datatype receive_type, MPI_Comm comm,
                const call_options& options = {});

/// MPI_Alltoallw; displacements are in bytes. Otherwise as all_to_allv.
int all_to_allw(const void* send, const int* send_counts, const int* send_displacements,
                const MPI_Datatype* send_types, void* receive, const int* receive_counts,
                const int* receive_displacements, const MPI_Datatype* receive_types, MPI_Comm comm,
                const call_options& options = {});

/// MPI_Scan. Collective over `comm`; `send` may be MPI_IN_PLACE.
int scan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
         const call_options& options = {});

/// MPI_Exscan: rank 0's `receive` is not touched. Otherwise as scan.
int exscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
           const call_options& options = {});

/// MPI_Barrier. Collective over `comm`.
int barrier(MPI_Comm comm, const call_options& options = {});

/// MPI_Neighbor_alltoall. Collective over `comm`, which has a topology. All calls of a function on
/// a communicator are tuned together, whatever their sizes, as a function set of its name
/// (RAILPASS_USE=neighbor_all_to_all:pairwise).
int neighbor_all_to_all(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                        int receive_count, MPI_Datatype receive_type, MPI_Comm comm);

/// MPI_Neighbor_alltoallv; displacements are in elements. Otherwise as neighbor_all_to_all.
int neighbor_all_to_allv(const void* send, const int* send_counts, const int* send_displacements,
                         MPI_Datatype send_type, void* receive, const int* receive_counts,
                         const int* receive_displacements, MPI_Datatype receive_type,
                         MPI_Comm comm);

/// MPI_Neighbor_alltoallw; displacements are in bytes. Otherwise as neighbor_all_to_all.
int neighbor_all_to_allw(const void* send, const int* send_counts,
                         const MPI_Aint* send_displacements, const MPI_Datatype* send_types,
                         void* receive, const int* receive_counts,
                         const MPI_Aint* receive_displacements, const MPI_Datatype* receive_types,
                         MPI_Comm comm);

/// MPI_Neighbor_allgather. Otherwise as neighbor_all_to_all.
int neighbor_all_gather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                        int receive_count, MPI_Datatype receive_type, MPI_Comm comm);

/// MPI_Neighbor_allgatherv; displacements are in elements. Otherwise as neighbor_all_to_all.
int neighbor_all_gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                         const int* receive_counts, const int* displacements,
                         MPI_Datatype receive_type, MPI_Comm comm);

/// Gives `comm` its own value of a setting (a name of `railpass settings`, for example "policy" or
/// "enable"). To be called equally on all ranks of `comm`, before it is tuned; does not
/// communicate. Throws railpass::error if there is no such setting, the value is not one, or it is
/// too late.
void configure(MPI_Comm comm, std::string_view setting, std::string_view value);

/// Tunes `comm` from its next call on; otherwise that begins at its 8th call (in programs that
/// `railpass run` starts in its first long one), or later if its calls take less than 20 us and
/// have not taken 5 ms together, so that few or short calls cost nothing. For MPI_COMM_WORLD at the
/// program's start it also makes what all later communicators' messages need, which with
/// MPI_THREAD_MULTIPLE is not made inside a collective. Collective; returns an MPI error code.
int start_tuning(MPI_Comm comm);

/// The arm that ran in this rank's last call on `comm`, such as "pipeline+segment_bytes=8KiB";
/// "native" if the MPI library's collective ran or will always run; empty before the first call of
/// a communicator that may be tuned. Local.
std::string last_arm(MPI_Comm comm);

/// Writes what was learnt so far on all communicators whose rank 0 is this process, as versioned
/// JSON (`railpass stats` shows it). Local; atomic. Throws railpass::error if it cannot be written.
void dump_statistics(const std::string& path);

}  // namespace railpass::mpi

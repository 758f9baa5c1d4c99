// SPDX-License-Identifier: BSL-1.0
//
// Tuned collectives with MPI's signatures, in namespace railpass::mpi. The Boost.MPI facade
// (railpass/collectives.hpp), the C header and the preload library are thin layers over these
// calls.
//
// Arguments, semantics and error codes are those of the matching MPI call (MPI 4.0, chapter 6).
// Each collective returns MPI_SUCCESS or an error code; errors first go to the communicator's error
// handler. A failure of the tuning never fails a call: all ranks then run the MPI library's own
// collective. A rank without the memory that an arm needs reports MPI_ERR_NO_MEM before it sends
// anything. The calls of the other ranks are then undefined, as after any error of a collective.
//
// Errors that only railpass can cause have an MPI error class of their own, which MPI_Error_string
// explains. Before the error handler is called, a line on standard error names communicator,
// collective and reason. If the ranks' calls do not match (for example in length), the error is
// MPI_ERR_TRUNCATE on all ranks that detect the mismatch or wait in a call of the communicator.
// Later calls on that communicator go to the MPI library.
//
// Calls on inter-communicators and on communicators of one rank always go to the MPI library.
//
// All ranks of a communicator must call the same collectives through railpass: a rank that calls
// MPI_Bcast does not match a rank that calls railpass::mpi::broadcast.
#pragma once

#include "railpass/base/error.hpp"
#include "railpass/base/log.hpp"
#include "railpass/options.hpp"

#include <mpi.h>

#include <string>
#include <string_view>

namespace railpass::mpi {

/// Replaces MPI_Bcast. Collective over `comm`.
int broadcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
              const call_options& options = {});

/// Replaces MPI_Allreduce; all ranks obtain bitwise the same result. Collective over `comm`.
/// @param send may be MPI_IN_PLACE, then on all ranks
int all_reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm, const call_options& options = {});

/// Replaces MPI_Reduce. Collective over `comm`.
/// @param send may be MPI_IN_PLACE at the root
/// @param receive is used at the root only
int reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root,
           MPI_Comm comm, const call_options& options = {});

/// Replaces MPI_Reduce_scatter. Collective over `comm`.
/// @param send may be MPI_IN_PLACE, then on all ranks
/// @param counts elements of the result for each rank
int reduce_scatter(const void* send, void* receive, const int* counts, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, const call_options& options = {});

/// Replaces MPI_Reduce_scatter_block. Collective over `comm`.
/// @param send may be MPI_IN_PLACE, then on all ranks
/// @param count elements of the result for each rank
int reduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm, const call_options& options = {});

/// Replaces MPI_Gather. Collective over `comm`.
/// @param send may be MPI_IN_PLACE at the root
int gather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
           int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm,
           const call_options& options = {});

/// Replaces MPI_Gatherv. Collective over `comm`.
/// @param send may be MPI_IN_PLACE at the root
/// @param displacements in elements
int gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
            const int* receive_counts, const int* displacements, MPI_Datatype receive_type,
            int root, MPI_Comm comm, const call_options& options = {});

/// Replaces MPI_Scatter. Collective over `comm`.
/// @param receive may be MPI_IN_PLACE at the root
int scatter(const void* send, int send_count, MPI_Datatype send_type, void* receive,
            int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm,
            const call_options& options = {});

/// Replaces MPI_Scatterv. Collective over `comm`.
/// @param displacements in elements
/// @param receive may be MPI_IN_PLACE at the root
int scatterv(const void* send, const int* send_counts, const int* displacements,
             MPI_Datatype send_type, void* receive, int receive_count, MPI_Datatype receive_type,
             int root, MPI_Comm comm, const call_options& options = {});

/// Replaces MPI_Allgather. Collective over `comm`.
/// @param send may be MPI_IN_PLACE, then on all ranks
int all_gather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
               int receive_count, MPI_Datatype receive_type, MPI_Comm comm,
               const call_options& options = {});

/// Replaces MPI_Allgatherv. Collective over `comm`.
/// @param send may be MPI_IN_PLACE, then on all ranks
/// @param displacements in elements
int all_gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                const int* receive_counts, const int* displacements, MPI_Datatype receive_type,
                MPI_Comm comm, const call_options& options = {});

/// Replaces MPI_Alltoall. Collective over `comm`.
/// @param send may be MPI_IN_PLACE, then on all ranks
int all_to_all(const void* send, int send_count, MPI_Datatype send_type, void* receive,
               int receive_count, MPI_Datatype receive_type, MPI_Comm comm,
               const call_options& options = {});

/// Replaces MPI_Alltoallv; displacements are in elements. Collective over `comm`.
/// @param send may be MPI_IN_PLACE, then on all ranks; such calls always go to the MPI library
int all_to_allv(const void* send, const int* send_counts, const int* send_displacements,
                MPI_Datatype send_type, void* receive, const int* receive_counts,
                const int* receive_displacements, MPI_Datatype receive_type, MPI_Comm comm,
                const call_options& options = {});

/// Replaces MPI_Alltoallw; displacements are in bytes. Collective over `comm`.
/// @param send may be MPI_IN_PLACE, then on all ranks; such calls always go to the MPI library
int all_to_allw(const void* send, const int* send_counts, const int* send_displacements,
                const MPI_Datatype* send_types, void* receive, const int* receive_counts,
                const int* receive_displacements, const MPI_Datatype* receive_types, MPI_Comm comm,
                const call_options& options = {});

/// Replaces MPI_Scan. Collective over `comm`.
/// @param send may be MPI_IN_PLACE
int scan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
         const call_options& options = {});

/// Replaces MPI_Exscan; the call does not touch `receive` of rank 0. Collective over `comm`.
/// @param send may be MPI_IN_PLACE
int exscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
           const call_options& options = {});

/// Replaces MPI_Barrier. Collective over `comm`.
int barrier(MPI_Comm comm, const call_options& options = {});

/// Replaces MPI_Neighbor_alltoall. Collective over `comm`. railpass tunes all calls of one
/// neighbour collective on a communicator together, whatever their sizes, as a function set of the
/// collective's name (RAILPASS_USE=neighbor_all_to_all:pairwise).
/// @param comm has a topology
int neighbor_all_to_all(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                        int receive_count, MPI_Datatype receive_type, MPI_Comm comm);

/// Replaces MPI_Neighbor_alltoallv; displacements are in elements. Otherwise as
/// neighbor_all_to_all.
int neighbor_all_to_allv(const void* send, const int* send_counts, const int* send_displacements,
                         MPI_Datatype send_type, void* receive, const int* receive_counts,
                         const int* receive_displacements, MPI_Datatype receive_type,
                         MPI_Comm comm);

/// Replaces MPI_Neighbor_alltoallw; displacements are in bytes. Otherwise as neighbor_all_to_all.
int neighbor_all_to_allw(const void* send, const int* send_counts,
                         const MPI_Aint* send_displacements, const MPI_Datatype* send_types,
                         void* receive, const int* receive_counts,
                         const MPI_Aint* receive_displacements, const MPI_Datatype* receive_types,
                         MPI_Comm comm);

/// Replaces MPI_Neighbor_allgather. Otherwise as neighbor_all_to_all.
int neighbor_all_gather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                        int receive_count, MPI_Datatype receive_type, MPI_Comm comm);

/// Replaces MPI_Neighbor_allgatherv; displacements are in elements. Otherwise as
/// neighbor_all_to_all.
int neighbor_all_gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                         const int* receive_counts, const int* displacements,
                         MPI_Datatype receive_type, MPI_Comm comm);

/// Sets the value of a setting for `comm` alone. Local, but every rank of `comm` must make the same
/// call before `comm` is tuned.
/// @param setting a name that `railpass settings` lists, for example "policy" or "enable"
/// @throws railpass::error if the setting is unknown, the value is invalid or `comm` is tuned
///   already
void configure(MPI_Comm comm, std::string_view setting, std::string_view value);

/// Starts tuning `comm` at its next call. Collective over `comm`.
///
/// Without this call, tuning starts at the 8th call of `comm` (in programs started by `railpass
/// run`: at the first long call). Tuning starts later if the calls take less than 20 us each and
/// less than 5 ms together, because tuning few or short calls does not pay. On MPI_COMM_WORLD at
/// the program's start, this call also creates railpass' internal communicator for all later
/// communicators. With MPI_THREAD_MULTIPLE railpass cannot create that communicator inside a
/// collective.
/// @return an MPI error code
/// @throws railpass::error if `comm` is no communicator, before MPI_Init and after MPI_Finalize
int start_tuning(MPI_Comm comm);

/// Returns the arm of this rank's last call on `comm`, for example "pipeline+segment_bytes=8KiB".
/// Local.
/// @return "native" if the MPI library's collective ran or will always run; empty before the first
///   call of a communicator that may be tuned
std::string last_arm(MPI_Comm comm);

/// Writes the statistics of all communicators whose rank 0 is this process. Local; below
/// MPI_THREAD_MULTIPLE not while another thread calls railpass.
/// @param path the file that is replaced atomically, in versioned JSON; `railpass stats` shows it
/// @throws railpass::error if the file cannot be written
void dump_statistics(const std::string& path);

}  // namespace railpass::mpi

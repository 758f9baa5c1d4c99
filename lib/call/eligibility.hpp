// SPDX-License-Identifier: BSL-1.0
//
// Decides which calls are eligible for tuning. Decisions here and in session::goes_to_mpi depend
// only on values that are equal on all ranks, or on mistakes that the MPI library finds on this
// rank before it communicates.
#pragma once

#include "lib/call/neighbor_call.hpp"
#include "lib/call/neighbors.hpp"

namespace railpass::internal {

enum class eligibility {
  /// The MPI library must answer: it refuses the arguments on this rank, or only it knows this
  /// combination of type and operation. The call is not counted.
  leave_to_mpi,
  /// All ranks send nothing. The call is not counted.
  empty,
  eligible
};

/// Classifies a call on an intra-communicator, and fills in its two lengths. Local. Arguments that
/// MPI libraries refuse count as invalid only if this library refuses them: a call refused on one
/// rank alone does not exist for other ranks.
eligibility classify(call& c, int rank, int num_ranks);

/// Classifies a call between neighbours: no such call is empty for all ranks.
eligibility classify(const neighbor_call& c, const neighbors& around);

/// The length of the call's message, computed here for all collectives. Equal on all ranks, by
/// MPI's rules about type signatures; 0 if only pairs of ranks know the length. Negative: invalid
/// arguments, or more than 2^60 bytes. Local.
std::int64_t message_bytes_of(const call& c, int rank, int num_ranks);

/// For a valid call whose lengths only pairs of ranks know: the packed bytes that this rank sends
/// or receives, whichever is larger. With equal blocks, the largest value of all ranks equals
/// message_bytes_of(). Local.
std::int64_t own_bytes_of(const call& c, int rank, int num_ranks);

/// For a valid all_to_allv or all_to_allw: the packed bytes of the longest block that this rank
/// sends. Local.
std::int64_t longest_block_of(const call& c, int num_ranks);

/// Whether every MPI library defines the operation for elements of this type. Operations of the
/// user are defined for all types. Local.
bool is_defined(MPI_Op op, MPI_Datatype type);

/// Whether the operation is predefined by MPI, or null.
bool is_builtin(MPI_Op op);

/// Whether the type is one of MPI's integers. Local.
bool is_integer(MPI_Datatype type);
/// Whether the type is one of MPI's floating-point numbers, which are not complex. Local.
bool is_floating(MPI_Datatype type);
/// Whether the type is one of MPI's unsigned integers. Local.
bool is_unsigned(MPI_Datatype type);

/// Whether only predefined types and operations define the call on this rank: no handle that may be
/// freed and reused. The call must be eligible. Local.
bool names_only_predefined(const call& c, int rank);

/// Whether elements may be combined in any order. True for calls that combine nothing.
inline bool is_commutative(const call& c) {
  if (!c.is_reduction()) return true;
  int commutative = 0;
  PMPI_Op_commutative(c.operation, &commutative);
  return commutative != 0;
}

}  // namespace railpass::internal

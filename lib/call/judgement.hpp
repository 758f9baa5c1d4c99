// SPDX-License-Identifier: BSL-1.0
//
// Which calls may be tuned. What is decided here, and in session::run, is decided from what is
// equal on all ranks, or by a mistake that the MPI library finds on this rank before it
// communicates.
#pragma once

#include "lib/sets/neighbor_call.hpp"
#include "lib/sets/neighbors.hpp"

namespace railpass::internal {

enum class judgement {
  /// The MPI library is to answer: it refuses the arguments on this rank, or has a type and an
  /// operation of which only it knows what they mean together. The call is not counted.
  leave_to_mpi,
  /// Nothing is sent, on all ranks. The call is not counted.
  empty,
  ours
};

/// Judges a call on an intra-communicator, and fills in its two lengths. Local. Arguments that MPI
/// libraries refuse count as such only if this one does: a call that is refused on one rank alone
/// is no call of the others.
judgement judge(call& c, int rank, int num_ranks);

/// The same of a call between neighbours: no call is empty for all ranks.
judgement judge(const neighbor_call& c, const neighbors& around);

/// The length of the call's message, in one place for all collectives: equal on all ranks, by MPI's
/// rules about type signatures; 0 if only pairs of ranks know it. Negative: no valid arguments, or
/// longer than 2^60 bytes. Local.
std::int64_t message_bytes_of(const call& c, int rank, int num_ranks);

/// Of a valid call whose lengths only pairs of ranks know: the packed bytes that this rank sends or
/// receives, the larger. The largest one of all ranks is what message_bytes_of() is of a call with
/// equal blocks. Local.
std::int64_t own_bytes_of(const call& c, int rank, int num_ranks);

/// Whether every MPI library has the operation for elements of this type. All operations of the
/// user's are for all types. Local.
bool is_defined(MPI_Op op, MPI_Datatype type);

/// Whether the operation is one of MPI's own, or none at all.
bool is_builtin(MPI_Op op);

/// Whether what the call means on this rank is said by types and an operation of MPI's own alone:
/// by none that may be freed, and its handle become another one's. The call must be ours. Local.
bool names_only_predefined(const call& c, int rank);

/// Whether ranks' elements may be combined in any order; all calls that combine none are.
inline bool is_commutative(const call& c) {
  if (!c.is_reduction()) return true;
  int commutative = 0;
  PMPI_Op_commutative(c.operation, &commutative);
  return commutative != 0;
}

}  // namespace railpass::internal

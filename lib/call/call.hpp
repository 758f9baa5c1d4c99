// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "collectives/collective.hpp"
#include "railpass/options.hpp"

#include <mpi.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace railpass::internal {

/// A number for each rank, or each neighbour, as the user gave it: ints, or the 64-bit numbers of
/// large-count forms.
class rank_values {
 public:
  rank_values() = default;
  rank_values(const int* values) : values_(values) {}
  template <std::integral T>
  requires(sizeof(T) == 8) rank_values(const T* values) : values_(values), is_wide_(true) {}

  explicit operator bool() const { return values_ != nullptr; }
  std::int64_t operator[](std::int64_t rank) const {
    if (!is_wide_) return static_cast<const int*>(values_)[rank];
    std::int64_t value;  // of one of MPI's types for them
    std::memcpy(&value, static_cast<const std::byte*>(values_) + 8 * rank, 8);
    return value;
  }
  /// Whether both are the same memory.
  bool same_array(const rank_values& other) const { return values_ == other.values_; }
  /// As the user gave them.
  template <class T>
  const T* as() const {
    return static_cast<const T*>(values_);
  }

 private:
  const void* values_ = nullptr;
  bool is_wide_ = false;
};

/// One side (sent or received) of a rank's arguments, as in MPI.
struct call_side {
  const void* memory = nullptr;  ///< may be MPI_IN_PLACE
  std::int64_t count = 0;        ///< elements; of one block if the message has blocks
  MPI_Datatype type = MPI_DATATYPE_NULL;
  rank_values counts{};                 ///< v-forms: by rank
  rank_values displacements{};          ///< v-forms: by rank, elements; bytes if there are types
  const MPI_Datatype* types = nullptr;  ///< w-form: by rank

  bool in_place() const { return memory == MPI_IN_PLACE; }
};

/// One call of a collective as the user made it: what crosses every boundary below the public API.
struct call {
  collective op = collective::broadcast;
  call_side send{};     ///< reductions: only the memory; broadcast: nothing
  call_side receive{};  ///< broadcast: the buffer; reductions: count and type, of both sides
  MPI_Op operation = MPI_OP_NULL;
  int root = 0;
  MPI_Comm comm = MPI_COMM_NULL;
  bool is_large = false;  ///< the form with large counts: the MPI library's own is that, too
  /// Packed bytes of the message, of all ranks' blocks if it has such; 0 where only pairs of ranks
  /// know lengths.
  std::int64_t message_bytes = 0;
  std::int64_t element_bytes = 0;  ///< reductions: packed bytes of an element

  const promise_traits& traits() const { return traits_of(op); }
  bool is_reduction() const { return traits().reduces; }
  /// Whether sizes may decide anything.
  bool has_size() const {
    return describe(op).lengths != block_lengths::of_pair &&
           describe(op).what != promise::all_arrive;
  }
};

/// The MPI library's own collective. Returns an MPI error code, as the next one.
int run_native(const call& c);
/// The tuned collective: what all calls of railpass/mpi.hpp come to. Fills in the two lengths.
int run_call(call& c, const call_options& options = {});

}  // namespace railpass::internal

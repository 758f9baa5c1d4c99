// SPDX-License-Identifier: BSL-1.0
//
// The elements of buffers: a few datatypes, whose values every rank can compute for every other
// rank, and the operations that reduce them.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace life {

enum class number { int8, int16, int32, int64, float32, float64 };

/// One number within an element, and its place.
struct field {
  number kind;
  std::ptrdiff_t at_bytes;
};

struct element {
  const char* name;
  MPI_Datatype type;
  std::ptrdiff_t extent_bytes;
  std::vector<field> fields;
  bool is_derived;  ///< of the program, not of MPI

  bool is_dense() const;
};

enum class operation {
  sum,
  max,
  min,
  prod,
  band,
  bor,
  bxor,
  land,
  lor,
  lxor,
  maxloc,
  minloc,
  user,          ///< of the program, commutative
  user_ordered,  ///< of the program, only associative
  count
};

/// Makes the datatypes and operations; after MPI_Init. They live until MPI is finalized.
void make_elements();
const std::vector<element>& elements();
/// A datatype without data, with or without an extent.
MPI_Datatype nothing(bool has_extent);
MPI_Op mpi_operation(operation op);

/// Whether MPI defines the operation for the element.
bool fits(operation op, const element& what);

/// The numbers of one element, one per field.
using values = std::array<std::int64_t, 3>;

/// The value of `rank` for element number `index` of the call with this key; small enough that no
/// reduction of 9 ranks overflows or rounds.
values given(operation op, std::uint64_t key, int rank, std::int64_t index);

/// The reduction of the values of ranks from..to-1.
values reduced(operation op, std::uint64_t key, int from, int to, std::int64_t index);

void put(const element& what, char* at, const values& v);
bool same(const element& what, const char* a, const char* b);

}  // namespace life

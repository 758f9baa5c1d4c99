// SPDX-License-Identifier: BSL-1.0
//
// Handles any number of elements, although MPI's calls count elements and bytes in ints.
#pragma once

#include "lib/exec/binding.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace railpass::internal {

/// An element has `size` packed bytes and `extent` bytes in memory. Calls f(memory offset, packed
/// offset, elements, their packed bytes) for portions that ints can count, of at least one element.
/// Stops at the first error code and returns it. Elements without bytes, which may have no memory,
/// are never passed to f.
template <class F>
int in_portions(std::int64_t elements, std::int64_t size, std::int64_t extent, F f) {
  if (size == 0) return MPI_SUCCESS;
  const std::int64_t most = std::max<std::int64_t>(1, std::numeric_limits<int>::max() / size);
  for (std::int64_t first = 0; first < elements; first += most) {
    const std::int64_t n = std::min(most, elements - first);
    if (const int failure = f(first * extent, first * size, int(n), int(n * size))) return failure;
  }
  return MPI_SUCCESS;
}

/// MPI_Pack and MPI_Unpack for cases that MPI does not support: an element whose size exceeds int,
/// and MPI_BOTTOM, which MPICH refuses. Local; return an MPI error code. `own`: a communicator
/// whose errors are returned, because the handler of another one would hear of a datatype without
/// MPI_Type_commit before the caller can report it.
int pack_large_element(const std::byte* memory, MPI_Datatype type, std::int64_t size,
                       std::byte* packed);
int unpack_large_element(const std::byte* packed, MPI_Datatype type, std::int64_t size,
                         std::byte* memory);
int pack_from_bottom(int count, MPI_Datatype type, std::byte* packed, int bytes, MPI_Comm own);
int unpack_to_bottom(const std::byte* packed, int bytes, int count, MPI_Datatype type,
                     MPI_Comm own);

/// Packs `elements` at `memory` to `size` bytes each. Local; returns an MPI error code. `own`: see
/// pack_from_bottom().
inline int pack_elements(const std::byte* memory, std::int64_t elements, MPI_Datatype type,
                         std::int64_t size, std::int64_t extent, std::byte* packed, MPI_Comm own) {
  return in_portions(elements, size, extent,
                     [&](std::int64_t first, std::int64_t to, int n, int bytes) {
                       const std::byte* const from = displaced(memory, first);
                       if (size > std::numeric_limits<int>::max())
                         return pack_large_element(from, type, size, packed + to);
                       if (from == MPI_BOTTOM)
                         return pack_from_bottom(n, type, packed + to, bytes, own);
                       int position = 0;
                       return PMPI_Pack(from, n, type, packed + to, bytes, &position, own);
                     });
}

/// The inverse of pack_elements().
inline int unpack_elements(const std::byte* packed, std::int64_t elements, MPI_Datatype type,
                           std::int64_t size, std::int64_t extent, std::byte* memory,
                           MPI_Comm own) {
  return in_portions(elements, size, extent,
                     [&](std::int64_t first, std::int64_t from, int n, int bytes) {
                       std::byte* const to = displaced(memory, first);
                       if (size > std::numeric_limits<int>::max())
                         return unpack_large_element(packed + from, type, size, to);
                       if (to == MPI_BOTTOM)
                         return unpack_to_bottom(packed + from, bytes, n, type, own);
                       int position = 0;
                       return PMPI_Unpack(packed + from, bytes, &position, to, n, type, own);
                     });
}

}  // namespace railpass::internal

// SPDX-License-Identifier: BSL-1.0
//
// Any number of elements, where MPI's calls take an int of them and of their bytes.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace railpass {

/// `size` packed bytes and `extent` bytes in memory each. Calls f(memory offset, packed offset,
/// elements, their packed bytes) for as many at once as ints can count; stops at the first error
/// code and returns it.
template <class F>
int in_portions(std::int64_t elements, std::int64_t size, std::int64_t extent, F f) {
  const std::int64_t most =
      std::max<std::int64_t>(1, std::numeric_limits<int>::max() / std::max<std::int64_t>(1, size));
  for (std::int64_t first = 0; first < elements; first += most) {
    const std::int64_t n = std::min(most, elements - first);
    if (const int failure = f(first * extent, first * size, int(n), int(n * size))) return failure;
  }
  return MPI_SUCCESS;
}

inline int pack_elements(const std::byte* memory, std::int64_t elements, MPI_Datatype type,
                         std::int64_t size, std::int64_t extent, std::byte* packed) {
  return in_portions(
      elements, size, extent, [&](std::int64_t from, std::int64_t to, int n, int bytes) {
        int position = 0;
        return PMPI_Pack(memory + from, n, type, packed + to, bytes, &position, MPI_COMM_SELF);
      });
}

inline int unpack_elements(const std::byte* packed, std::int64_t elements, MPI_Datatype type,
                           std::int64_t size, std::int64_t extent, std::byte* memory) {
  return in_portions(
      elements, size, extent, [&](std::int64_t to, std::int64_t from, int n, int bytes) {
        int position = 0;
        return PMPI_Unpack(packed + from, bytes, &position, memory + to, n, type, MPI_COMM_SELF);
      });
}

}  // namespace railpass

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>

namespace railpass::internal {

/// What the executor must know of a datatype. Local: another rank may use another layout for the
/// same data.
struct datatype_layout {
  std::int64_t size = 0;    ///< packed bytes of one element
  std::int64_t extent = 0;  ///< distance of two elements in memory, bytes
  std::int64_t true_lower_bound = 0;
  std::int64_t true_extent = 0;
  /// Elements lie in memory as they are packed, one behind the other: memory is the wire format.
  bool packed = false;
};

/// The layout of a datatype; found once per datatype and kept as its attribute under `key`.
/// Returns an MPI error code.
int layout_of(MPI_Datatype type, int key, datatype_layout& layout);

/// Whether the datatype is MPI's own, which always means the same.
bool is_predefined(MPI_Datatype type);

/// Calls `visit` with MPI's own datatypes that so many elements consist of, and with as many packed
/// bytes as follow each other of each, in the order in which they are packed. Local; returns an MPI
/// error code.
int visit_packed(MPI_Datatype type, std::int64_t elements,
                 const std::function<void(MPI_Datatype, std::int64_t bytes)>& visit);

/// The keyval for layout_of. Returns an MPI error code.
int create_datatype_key(int* key);

}  // namespace railpass::internal

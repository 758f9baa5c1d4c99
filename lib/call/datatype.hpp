// SPDX-License-Identifier: BSL-1.0
//
// How the elements of a datatype lie in memory, and the predefined datatypes inside.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>

namespace railpass::internal {

/// The facts about a datatype that the executor needs. Local: another rank may use another layout
/// for the same data.
struct datatype_layout {
  std::int64_t size = 0;    ///< packed bytes of one element
  std::int64_t extent = 0;  ///< distance of two elements in memory, bytes
  std::int64_t true_lower_bound = 0;
  std::int64_t true_extent = 0;
  /// Elements lie in memory as in packed form: memory is the wire format.
  bool packed = false;
};

/// Finds the layout of a datatype, and keeps it as the datatype's attribute under `key`. Returns an
/// MPI error code.
int layout_of(MPI_Datatype type, int key, datatype_layout& layout);

/// Whether MPI defines the datatype, so that its meaning is fixed.
bool is_predefined(MPI_Datatype type);

/// Calls `visit` with the predefined datatypes inside `elements` elements, in packing order, each
/// with its number of consecutive packed bytes. Local; returns an MPI error code.
int visit_packed(MPI_Datatype type, std::int64_t elements,
                 const std::function<void(MPI_Datatype, std::int64_t bytes)>& visit);

/// The keyval for layout_of. Returns an MPI error code.
int create_datatype_key(int* key);

}  // namespace railpass::internal

// SPDX-License-Identifier: BSL-1.0
#include "lib/session/datatype.hpp"

#include <memory>
#include <new>
#include <vector>

namespace railpass {

namespace {

// Larger elements count as not packed: they are staged, which is correct for every layout.
constexpr std::int64_t largest_probed_bytes = 1 << 20;

int delete_layout(MPI_Datatype, int, void* value, void*) {
  delete static_cast<datatype_layout*>(value);
  return MPI_SUCCESS;
}

// size == extent does not suffice: a type map may visit its bytes in another order. So one element
// whose bytes are numbered is packed, one pass per byte of the number.
int probe_packed(MPI_Datatype type, std::int64_t size, bool& packed) {
  std::vector<unsigned char> memory(static_cast<std::size_t>(size));
  std::vector<unsigned char> wire(memory.size());
  packed = true;
  for (int shift = 0; packed && (size >> shift) > 0; shift += 8) {
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = (unsigned char)(i >> shift);
    int position = 0;
    if (const int failure = PMPI_Pack(memory.data(), 1, type, wire.data(), int(wire.size()),
                                      &position, MPI_COMM_SELF))
      return failure;
    packed = position == size && memory == wire;
  }
  return MPI_SUCCESS;
}

int inspect(MPI_Datatype type, datatype_layout& layout) {
  MPI_Count size = 0, lower = 0, extent = 0, true_lower = 0, true_extent = 0;
  if (const int failure = PMPI_Type_size_x(type, &size)) return failure;
  if (const int failure = PMPI_Type_get_extent_x(type, &lower, &extent)) return failure;
  if (const int failure = PMPI_Type_get_true_extent_x(type, &true_lower, &true_extent))
    return failure;
  layout = {.size = size,
            .extent = extent,
            .true_lower_bound = true_lower,
            .true_extent = true_extent,
            .packed = false};
  if (size != extent || true_extent != size || true_lower != 0 || size > largest_probed_bytes)
    return MPI_SUCCESS;
  if (size == 0) return layout.packed = true, MPI_SUCCESS;
  return probe_packed(type, size, layout.packed);
}

}  // namespace

int create_datatype_key(int* key) {
  return PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, delete_layout, key, nullptr);
}

int layout_of(MPI_Datatype type, int key, datatype_layout& layout) {
  void* known = nullptr;
  int found = 0;
  if (const int failure = PMPI_Type_get_attr(type, key, &known, &found)) return failure;
  if (found) {
    layout = *static_cast<datatype_layout*>(known);
    return MPI_SUCCESS;
  }
  auto fresh = std::make_unique<datatype_layout>();
  if (const int failure = inspect(type, *fresh)) return failure;
  layout = *fresh;
  if (const int failure = PMPI_Type_set_attr(type, key, fresh.get())) return failure;
  fresh.release();
  return MPI_SUCCESS;
}

}  // namespace railpass

// SPDX-License-Identifier: BSL-1.0
#include "lib/session/datatype.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace railpass {

namespace {

// Of larger elements only what they are made of is looked at.
constexpr std::int64_t largest_probed_bytes = 1 << 20;

// Two threads may meet a datatype for the first time at once. Setting an attribute again would
// delete what a third one is reading.
std::mutex inspecting;

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

int inspect(MPI_Datatype type, datatype_layout& layout);

// Many elements of a packed type, one behind the other, are packed: how programs describe more than
// 2^31 elements. Other large types count as not packed.
int find_repeated(MPI_Datatype type, bool& packed) {
  packed = false;
  int ints = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
  if (const int failure = PMPI_Type_get_envelope(type, &ints, &addresses, &types, &combiner))
    return failure;
  if (combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP) return MPI_SUCCESS;
  int count = 0;
  MPI_Aint none = 0;
  MPI_Datatype element = MPI_DATATYPE_NULL;
  if (const int failure = PMPI_Type_get_contents(type, ints, 0, 1, &count, &none, &element))
    return failure;
  // MPI lends predefined types; what others it returns are the caller's, and maybe not committed.
  PMPI_Type_get_envelope(element, &ints, &addresses, &types, &combiner);
  const bool predefined = combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
                          combiner == MPI_COMBINER_F90_INTEGER ||
                          combiner == MPI_COMBINER_F90_COMPLEX;
  int code = predefined ? MPI_SUCCESS : PMPI_Type_commit(&element);
  datatype_layout layout;
  if (code == MPI_SUCCESS) code = inspect(element, layout);
  packed = layout.packed;
  if (!predefined) PMPI_Type_free(&element);
  return code;
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
  if (size != extent || true_extent != size || true_lower != 0) return MPI_SUCCESS;
  if (size > largest_probed_bytes) return find_repeated(type, layout.packed);
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
  std::unique_lock<std::mutex> lock;
  if (!found) {
    lock = std::unique_lock(inspecting);
    if (const int failure = PMPI_Type_get_attr(type, key, &known, &found)) return failure;
  }
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

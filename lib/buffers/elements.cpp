// SPDX-License-Identifier: BSL-1.0
#include "lib/buffers/elements.hpp"

#include "lib/rails/mpi/rail.hpp"

#include <mutex>

namespace railpass::internal {

namespace {

std::mutex copying;  // making a communicator twice at once, with one tag, is not allowed

// A message to oneself takes any layout and any size. On a communicator of its own: the program may
// wait for messages on MPI_COMM_SELF. That costs little beside 2 GiB.
int copy_element(const void* from, MPI_Datatype from_type, void* to, MPI_Datatype to_type) {
  const std::lock_guard lock(copying);
  MPI_Group self = MPI_GROUP_NULL;
  if (const int failure = PMPI_Comm_group(MPI_COMM_SELF, &self)) return failure;
  MPI_Comm own = MPI_COMM_NULL;
  int code = PMPI_Comm_create_group(MPI_COMM_SELF, self, 0, &own);
  PMPI_Group_free(&self);
  if (code != MPI_SUCCESS) return code;
  PMPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  code = PMPI_Sendrecv(from, 1, from_type, 0, 0, to, 1, to_type, 0, 0, own, MPI_STATUS_IGNORE);
  PMPI_Comm_free(&own);
  return code;
}

// Base address for displacements; any address will do.
std::byte anywhere{};
std::byte* const another_base = &anywhere;

int move_elements(int count, MPI_Datatype type, MPI_Datatype* moved) {
  MPI_Aint base = 0;
  PMPI_Get_address(another_base, &base);
  base = -base;
  if (const int failure = PMPI_Type_create_hindexed(1, &count, &base, type, moved)) return failure;
  return PMPI_Type_commit(moved);
}

}  // namespace

int pack_large_element(const std::byte* memory, MPI_Datatype type, std::int64_t size,
                       std::byte* packed) {
  MPI_Datatype wire = MPI_DATATYPE_NULL;
  if (const int failure = make_byte_type(size, std::numeric_limits<int>::max(), &wire))
    return failure;
  const int code = copy_element(memory, type, packed, wire);
  PMPI_Type_free(&wire);
  return code;
}

int unpack_large_element(const std::byte* packed, MPI_Datatype type, std::int64_t size,
                         std::byte* memory) {
  MPI_Datatype wire = MPI_DATATYPE_NULL;
  if (const int failure = make_byte_type(size, std::numeric_limits<int>::max(), &wire))
    return failure;
  const int code = copy_element(packed, wire, memory, type);
  PMPI_Type_free(&wire);
  return code;
}

int pack_from_bottom(int count, MPI_Datatype type, std::byte* packed, int bytes, MPI_Comm own) {
  MPI_Datatype moved = MPI_DATATYPE_NULL;
  if (const int failure = move_elements(count, type, &moved)) return failure;
  int position = 0;
  const int code = PMPI_Pack(another_base, 1, moved, packed, bytes, &position, own);
  PMPI_Type_free(&moved);
  return code;
}

int unpack_to_bottom(const std::byte* packed, int bytes, int count, MPI_Datatype type,
                     MPI_Comm own) {
  MPI_Datatype moved = MPI_DATATYPE_NULL;
  if (const int failure = move_elements(count, type, &moved)) return failure;
  int position = 0;
  const int code = PMPI_Unpack(packed, bytes, &position, another_base, 1, moved, own);
  PMPI_Type_free(&moved);
  return code;
}

}  // namespace railpass::internal

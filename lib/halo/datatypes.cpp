// SPDX-License-Identifier: BSL-1.0
#include "lib/halo/datatypes.hpp"

#include "lib/rails/mpi/rail.hpp"

#include <limits>

namespace railpass::internal::halo {

namespace {

constexpr std::int64_t largest_count = std::numeric_limits<int>::max();

datatype committed(MPI_Datatype made) {
  datatype result(made);
  check("MPI_Type_commit", PMPI_Type_commit(&made));
  return result;
}

datatype repeated(const datatype& what, std::int64_t count, std::int64_t stride_bytes) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  if (count > largest_count) check("MPI_Type_create_hvector", MPI_ERR_COUNT);
  if (stride_bytes == -1) {  // Open MPI 4.1 takes a vector of single bytes backwards for forwards
    const std::vector<int> lengths(std::size_t(count), 1);
    std::vector<MPI_Aint> displacements;
    for (std::int64_t i = 0; i < count; ++i) displacements.push_back(MPI_Aint(-i));
    check("MPI_Type_create_hindexed",
          PMPI_Type_create_hindexed(int(count), lengths.data(), displacements.data(), what, &made));
    return datatype(made);
  }
  check("MPI_Type_create_hvector",
        PMPI_Type_create_hvector(int(count), 1, MPI_Aint(stride_bytes), what, &made));
  return datatype(made);
}

}  // namespace

datatype bytes_type(std::int64_t bytes) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  if (bytes > largest_count) {
    check("MPI_Type_create_struct", make_byte_type(bytes, largest_count, &made));
    return datatype(made);
  }
  check("MPI_Type_contiguous", PMPI_Type_contiguous(int(bytes), MPI_BYTE, &made));
  return committed(made);
}

datatype strided_type(const strided& where, const array_layout& like) {
  datatype result;
  if (like.plain()) {
    const runs compact(where, like.element_bytes);
    result = bytes_type(compact.run_bytes());
    for (std::size_t k = compact.loops().size(); k-- > 0;)
      result = repeated(result, compact.loops()[k].count, compact.loops()[k].stride);
  } else {
    MPI_Datatype element = MPI_DATATYPE_NULL;
    check("MPI_Type_dup", PMPI_Type_dup(like.element, &element));
    result = datatype(element);
    for (std::size_t k = where.counts.size(); k-- > 0;)
      result = repeated(result, where.counts[k], where.strides_bytes[k]);
  }
  MPI_Datatype handle = result;
  check("MPI_Type_commit", PMPI_Type_commit(&handle));
  return result;
}

datatype joined_type(const std::vector<std::pair<std::byte*, datatype>>& parts) {
  std::vector<int> counts(parts.size(), 1);
  std::vector<MPI_Aint> displacements;
  std::vector<MPI_Datatype> types;
  for (const auto& [address, type] : parts) {
    displacements.emplace_back();
    check("MPI_Get_address", PMPI_Get_address(address, &displacements.back()));
    types.push_back(type);
  }
  for (std::size_t i = displacements.size(); i-- > 0;) displacements[i] -= displacements[0];
  MPI_Datatype made = MPI_DATATYPE_NULL;
  check("MPI_Type_create_struct",
        PMPI_Type_create_struct(int(parts.size()), counts.data(), displacements.data(),
                                types.data(), &made));
  return committed(made);
}

std::int64_t packed_bytes(const array_layout& like) {
  if (like.plain()) return like.element_bytes;
  MPI_Count bytes = 0;
  check("MPI_Type_size_x", PMPI_Type_size_x(like.element, &bytes));
  return std::int64_t(bytes);
}

}  // namespace railpass::internal::halo

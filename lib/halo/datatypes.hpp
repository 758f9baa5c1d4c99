// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/halo/failure.hpp"
#include "lib/halo/strided.hpp"

#include <mpi.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace railpass::internal::halo {

/// An MPI datatype that is freed with its owner.
class datatype {
 public:
  datatype() = default;
  explicit datatype(MPI_Datatype taken) : handle_(taken) {}
  datatype(datatype&& other) noexcept : handle_(std::exchange(other.handle_, MPI_DATATYPE_NULL)) {}
  datatype& operator=(datatype&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~datatype() {
    if (handle_ != MPI_DATATYPE_NULL) PMPI_Type_free(&handle_);
  }
  operator MPI_Datatype() const { return handle_; }

 private:
  MPI_Datatype handle_ = MPI_DATATYPE_NULL;
};

/// So many bytes without gaps. Committed, as all that follow. Throw mpi_failure.
datatype bytes_type(std::int64_t bytes);
/// Elements as they lie in memory, from the address of the first one on. `like` says what an
/// element is.
datatype strided_type(const strided& where, const array_layout& like);
/// Several datatypes at their addresses, relative to the first address. (MPICH does not pack from
/// MPI_BOTTOM.)
datatype joined_type(const std::vector<std::pair<std::byte*, datatype>>& parts);

/// Packed bytes of an element.
std::int64_t packed_bytes(const array_layout& like);

}  // namespace railpass::internal::halo

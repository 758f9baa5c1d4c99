// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/halo/plan.hpp"

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace railpass::internal::halo {

/// Whether MPI is told by datatypes where elements are, or gets packed copies.
enum class layout { derived, packed };

/// Arguments of MPI calls.
struct message {
  void* buffer = nullptr;
  int count = 1;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

/// The messages of these shifts, by their indices in the list.
class messages {
 public:
  /// Packed messages have a buffer of `packed_bytes` bytes. Throws mpi_failure, std::bad_alloc.
  messages(const std::vector<shift>& shifts, std::int64_t packed_bytes, layout in);

  message sent(std::size_t i) const;
  message received(std::size_t i) const;
  /// Before the message is sent, and after it has been received.
  void pack(std::size_t i);
  void unpack(std::size_t i);

 private:
  const std::vector<shift>& shifts_;
  layout in_;
  std::vector<std::byte> buffer_;
  std::vector<datatype> sent_types_, received_types_;
};

}  // namespace railpass::internal::halo

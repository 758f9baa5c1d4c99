// SPDX-License-Identifier: BSL-1.0
//
// What the facade's headers share.
#pragma once

#include "railpass/mpi.hpp"

#include <boost/mpi/communicator.hpp>
#include <boost/mpi/datatype.hpp>
#include <boost/mpi/exception.hpp>

#include <limits>
#include <string>

namespace railpass::detail {

/// A failed MPI call, as users of Boost.MPI know it.
inline void check(const char* routine, int code) {
  if (code != MPI_SUCCESS) throw boost::mpi::exception(routine, code);
}

/// The length of an archive as MPI counts it.
inline int archive_count(std::size_t bytes) {
  if (bytes > std::size_t(std::numeric_limits<int>::max()))
    throw error("a serialised value has " + std::to_string(bytes) +
                " bytes; at most 2147483647 can be sent in one message");
  return int(bytes);
}

}  // namespace railpass::detail

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/detail/boost_mpi.hpp"

namespace railpass {

/// Returns when all ranks of `comm` have called it, like boost::mpi::communicator::barrier, with
/// options last. Collective.
/// @throws boost::mpi::exception if MPI fails
struct barrier_fn {
  template <call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const Options&... options) const {
    detail::check("MPI_Barrier", mpi::barrier(comm, collect(options...)));
  }
};

inline constexpr barrier_fn barrier{};

}  // namespace railpass

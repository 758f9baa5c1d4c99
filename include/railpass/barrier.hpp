// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/detail/boost_mpi.hpp"

namespace railpass {

/// Returns when all ranks of `comm` have called it, as boost::mpi::communicator::barrier does;
/// options last. Collective. Throws boost::mpi::exception if MPI fails.
struct barrier_fn {
  template <call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const Options&... options) const {
    detail::check("MPI_Barrier", mpi::barrier(comm, collect(options...)));
  }
};

inline constexpr barrier_fn barrier{};

}  // namespace railpass

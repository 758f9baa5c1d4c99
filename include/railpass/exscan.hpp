// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/detail/archives.hpp"
#include "railpass/scan.hpp"

namespace railpass {

namespace detail {

struct exscan_call {
  template <class T, class Op>
  static void run(const boost::mpi::communicator& comm, const T* in, int n, T* out, const Op& op,
                  const call_options& options) {
    if constexpr (boost::mpi::is_mpi_datatype<T>::value) {
      check("MPI_Exscan", with_operation<T>(op, [&](MPI_Op made) {
              return mpi::exscan(in, out, n, datatype_of(n, out), made, comm, options);
            }));
    } else {
      // Each rank needs the result of the rank before it.
      std::vector<T> result(in == in_place<T>() ? out : in, (in == in_place<T>() ? out : in) + n);
      scan_objects(comm, in_place<T>(), n, result.data(), op);
      const int p = comm.size(), rank = comm.rank();
      std::vector<int> to(std::size_t(p), 0), from(to), at_0(to);
      if (rank + 1 < p) to[std::size_t(rank) + 1] = n;
      if (rank > 0) from[std::size_t(rank) - 1] = n;
      all_to_all_archives(comm, result.data(), {.sizes = to.data(), .displacements = at_0.data()},
                          out, {.sizes = from.data(), .displacements = at_0.data()},
                          policy_of(options));
    }
  }
};

}  // namespace detail

/// Combines the values of the ranks before each rank with `op`, in rank order. Signatures of scan.
/// Collective.
///
/// Values without an MPI datatype are combined by Boost.MPI's scan, because the operation needs
/// objects, and sent to the next rank; only the option `policy` then applies.
/// - `op` as for all_reduce.
/// - The output of rank 0 stays unchanged; the form that returns the result returns T{} on rank 0.
/// @throws boost::mpi::exception if MPI fails
///
///     int begin = railpass::exscan(world, int(mine.size()), std::plus<int>());
struct exscan_fn : detail::reduction_signatures<detail::exscan_call> {};

inline constexpr exscan_fn exscan{};

}  // namespace railpass

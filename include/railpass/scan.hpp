// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/detail/operations.hpp"

#include <boost/mpi/collectives/scan.hpp>

#include <vector>

namespace railpass {

namespace detail {

// scan of values without an MPI datatype; `in` may be in place.
template <class T, class Op>
void scan_objects(const boost::mpi::communicator& comm, const T* in, int n, T* out, const Op& op) {
  std::vector<T> copy;
  if (in == in_place<T>()) copy.assign(out, out + n);
  boost::mpi::scan(comm, in == in_place<T>() ? copy.data() : in, n, out, op);
}

struct scan_call {
  template <class T, class Op>
  static void run(const boost::mpi::communicator& comm, const T* in, int n, T* out, const Op& op,
                  const call_options& options) {
    if constexpr (boost::mpi::is_mpi_datatype<T>::value)
      check("MPI_Scan", with_operation<T>(op, [&](MPI_Op made) {
              return mpi::scan(in, out, n, datatype_of(n, out), made, comm, options);
            }));
    else
      scan_objects(comm, in, n, out, op);
  }
};

}  // namespace detail

/// Combines the values of ranks 0 to r with `op`, in rank order, on each rank r. Signatures of
/// Boost.MPI with options last, and in place. Collective.
///
/// Values without an MPI datatype go to Boost.MPI, because the operation needs objects; options
/// then have no effect.
/// - `op` as for all_reduce.
/// @throws boost::mpi::exception if MPI fails
///
///     int before_and_mine = railpass::scan(world, mine, std::plus<int>());
///     railpass::scan(world, boost::mpi::inplace(values.data()), n, std::plus<int>());
struct scan_fn : detail::reduction_signatures<detail::scan_call> {};

inline constexpr scan_fn scan{};

}  // namespace railpass

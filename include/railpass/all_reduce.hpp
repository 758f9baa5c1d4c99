// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/broadcast.hpp"
#include "railpass/detail/operations.hpp"

#include <boost/mpi/collectives/reduce.hpp>

#include <vector>

namespace railpass {

namespace detail {

struct all_reduce_call {
  template <class T, class Op>
  static void run(const boost::mpi::communicator& comm, const T* in, int n, T* out, const Op& op,
                  const call_options& options) {
    if constexpr (boost::mpi::is_mpi_datatype<T>::value) {
      check("MPI_Allreduce", with_operation<T>(op, [&](MPI_Op made) {
              return mpi::all_reduce(in, out, n, datatype_of(n, out), made, comm, options);
            }));
    } else {
      std::vector<T> copy;
      if (in == in_place<T>()) copy.assign(out, out + n);
      boost::mpi::reduce(comm, in == in_place<T>() ? copy.data() : in, n, out, op, 0);
      broadcast(comm, out, n, 0, policy(options.policy));
    }
  }
};

}  // namespace detail

/// Combines the values of all ranks with `op` and gives the result to all ranks, bitwise the same.
/// Signatures of Boost.MPI with options last. Collective.
///
/// Values without an MPI datatype are reduced to rank 0 by Boost.MPI, because the operation needs
/// objects, and broadcast by railpass; only the option `policy` then applies.
/// - `op` is any function object. The order of ranks is kept unless boost::mpi::is_commutative
///   declares `op` commutative.
/// @throws boost::mpi::exception if MPI fails
///
///     double sum = railpass::all_reduce(world, mine, std::plus<double>());
///     railpass::all_reduce(world, gradient.data(), n, total.data(), std::plus<double>());
///     railpass::all_reduce(world, boost::mpi::inplace(gradient.data()), n, std::plus<double>());
struct all_reduce_fn : detail::reduction_signatures<detail::all_reduce_call> {};

inline constexpr all_reduce_fn all_reduce{};

}  // namespace railpass

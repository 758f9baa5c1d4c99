// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/all_reduce.hpp"

#include <boost/mpi/collectives/scan.hpp>

namespace railpass {

/// Combines the values of ranks 0 to its own with `op`, on every rank; Boost.MPI's signatures with
/// options last. Collective. `op` as for all_reduce. Values without an MPI datatype go to
/// Boost.MPI. Throws boost::mpi::exception if MPI fails.
struct scan_fn {
  template <class T, class Op, call_option... Options>
  requires(!call_option<Op>) void operator()(const boost::mpi::communicator& comm, const T& in,
                                             T& out, Op op, const Options&... options) const {
    run(comm, &in, 1, &out, op, collect(options...));
  }
  template <class T, class Op, call_option... Options>
  requires(!call_option<Op>) T operator()(const boost::mpi::communicator& comm, const T& in, Op op,
                                          const Options&... options) const {
    T result{};
    run(comm, &in, 1, &result, op, collect(options...));
    return result;
  }
  template <class T, class Op, call_option... Options>
  requires(!call_option<Op>) void operator()(const boost::mpi::communicator& comm, const T* in,
                                             int n, T* out, Op op,
                                             const Options&... options) const {
    run(comm, in, n, out, op, collect(options...));
  }

 private:
  template <class T, class Op>
  static void run(const boost::mpi::communicator& comm, const T* in, int n, T* out, const Op& op,
                  const call_options& options) {
    if constexpr (boost::mpi::is_mpi_datatype<T>::value) {
      const MPI_Datatype type = boost::mpi::get_mpi_datatype<T>();
      if constexpr (boost::mpi::is_mpi_op<Op, T>::value) {
        detail::check("MPI_Scan", mpi::scan(in, out, n, type, boost::mpi::is_mpi_op<Op, T>::op(),
                                            comm, options));
      } else {
        const detail::user_operation<Op, T> operation(op);
        detail::check("MPI_Scan", mpi::scan(in, out, n, type, operation.handle(), comm, options));
      }
    } else {
      boost::mpi::scan(comm, in, n, out, op);
    }
  }
};

inline constexpr scan_fn scan{};

}  // namespace railpass

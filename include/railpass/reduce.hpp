// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/all_reduce.hpp"

namespace railpass {

/// Combines the values of all ranks with `op`, in rank order unless it commutes, and gives the
/// result to `root`; Boost.MPI's signatures with options last. Collective. `op` as for all_reduce.
/// Values without an MPI datatype go to Boost.MPI. Throws boost::mpi::exception if MPI fails.
struct reduce_fn {
  template <class T, class Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T& in, T& out, Op op, int root,
                  const Options&... options) const {
    run(comm, &in, 1, &out, op, root, collect(options...));
  }
  template <class T, class Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T& in, Op op, int root,
                  const Options&... options) const {
    run<T>(comm, &in, 1, nullptr, op, root, collect(options...));
  }
  template <class T, class Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, int n, T* out, Op op, int root,
                  const Options&... options) const {
    run(comm, in, n, out, op, root, collect(options...));
  }
  template <class T, class Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, int n, Op op, int root,
                  const Options&... options) const {
    run<T>(comm, in, n, nullptr, op, root, collect(options...));
  }

 private:
  template <class T, class Op>
  static void run(const boost::mpi::communicator& comm, const T* in, int n, T* out, const Op& op,
                  int root, const call_options& options) {
    if constexpr (boost::mpi::is_mpi_datatype<T>::value) {
      const MPI_Datatype type = boost::mpi::get_mpi_datatype<T>();
      if constexpr (boost::mpi::is_mpi_op<Op, T>::value) {
        detail::check(
            "MPI_Reduce",
            mpi::reduce(in, out, n, type, boost::mpi::is_mpi_op<Op, T>::op(), root, comm, options));
      } else {
        const detail::user_operation<Op, T> operation(op);
        detail::check("MPI_Reduce",
                      mpi::reduce(in, out, n, type, operation.handle(), root, comm, options));
      }
    } else if (comm.rank() == root) {
      boost::mpi::reduce(comm, in, n, out, op, root);
    } else {
      boost::mpi::reduce(comm, in, n, op, root);
    }
  }
};

inline constexpr reduce_fn reduce{};

}  // namespace railpass

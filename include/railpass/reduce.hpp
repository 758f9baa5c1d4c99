// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/detail/operations.hpp"

#include <boost/mpi/collectives/reduce.hpp>

#include <vector>

namespace railpass {

/// Combines the values of all ranks with `op` and gives the result to `root`. Signatures of
/// Boost.MPI with options last. Collective.
///
/// Values without an MPI datatype go to Boost.MPI, because the operation needs objects; options
/// then have no effect.
/// - `op` as for all_reduce.
/// - `out` is used at the root only, where a vector is resized. The forms without `out` are for the
///   other ranks.
/// - `inout` holds the result after the call at the root; on the other ranks the values stay.
/// @throws boost::mpi::exception if MPI fails
/// @throws railpass::error if the root has no output
struct reduce_fn {
  template <class T, class Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T& in, T& out, Op op, int root,
                  const Options&... options) const {
    run(comm, &in, 1, &out, op, root, collect(options...));
  }
  template <class T, class Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T& in, Op op, int root,
                  const Options&... options) const {
    run_elsewhere(comm, &in, 1, op, root, collect(options...));
  }
  template <class T, class Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, int n, T* out, Op op, int root,
                  const Options&... options) const {
    run(comm, in, n, out, op, root, collect(options...));
  }
  template <class T, class Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, int n, Op op, int root,
                  const Options&... options) const {
    run_elsewhere(comm, in, n, op, root, collect(options...));
  }
  template <class T, class Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in,
                  std::vector<T>& out, Op op, int root, const Options&... options) const {
    if (comm.rank() == root) out.resize(in.size());
    run(comm, in.data(), detail::count_of("reduce", std::int64_t(in.size())), out.data(), op, root,
        collect(options...));
  }
  template <class T, class Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in, Op op, int root,
                  const Options&... options) const {
    run_elsewhere(comm, in.data(), detail::count_of("reduce", std::int64_t(in.size())), op, root,
                  collect(options...));
  }
  template <class T, class Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, boost::mpi::inplace_t<T*> inout, int n,
                  Op op, int root, const Options&... options) const {
    run_in_place(comm, inout.buffer, n, op, root, collect(options...));
  }
  template <class T, class Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, boost::mpi::inplace_t<T> inout, Op op,
                  int root, const Options&... options) const {
    run_in_place(comm, &inout.buffer, 1, op, root, collect(options...));
  }

 private:
  template <class T, class Op>
  static void run(const boost::mpi::communicator& comm, const T* in, int n, T* out, const Op& op,
                  int root, const call_options& options) {
    const bool at_root = comm.rank() == root;
    if constexpr (boost::mpi::is_mpi_datatype<T>::value) {
      const MPI_Datatype type = detail::datatype_of(n, in, at_root ? out : nullptr);
      detail::check("MPI_Reduce", detail::with_operation<T>(op, [&](MPI_Op made) {
                      return mpi::reduce(in, out, n, type, made, root, comm, options);
                    }));
    } else if (!at_root) {
      boost::mpi::reduce(comm, in, n, op, root);
    } else {
      std::vector<T> copy;
      if (in == detail::in_place<T>()) copy.assign(out, out + n);
      boost::mpi::reduce(comm, in == detail::in_place<T>() ? copy.data() : in, n, out, op, root);
    }
  }

  template <class T, class Op>
  static void run_elsewhere(const boost::mpi::communicator& comm, const T* in, int n, const Op& op,
                            int root, const call_options& options) {
    detail::require_not_root("reduce", comm, root);
    run<T>(comm, in, n, nullptr, op, root, options);
  }

  template <class T, class Op>
  static void run_in_place(const boost::mpi::communicator& comm, T* inout, int n, const Op& op,
                           int root, const call_options& options) {
    run(comm, comm.rank() == root ? detail::in_place<T>() : inout, n, inout, op, root, options);
  }
};

inline constexpr reduce_fn reduce{};

}  // namespace railpass

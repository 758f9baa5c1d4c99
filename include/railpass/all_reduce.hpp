// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/broadcast.hpp"

#include <boost/mpi/collectives/reduce.hpp>
#include <boost/mpi/inplace.hpp>
#include <boost/mpi/operations.hpp>

#include <vector>

namespace railpass {

namespace detail {

/// An MPI_Op that calls a function object of the caller, state included, for the lifetime of this
/// object. MPI calls it in the thread that made the call.
template <class Op, class T>
class user_operation {
 public:
  explicit user_operation(const Op& op) {
    active_ = &op;
    check("MPI_Op_create", MPI_Op_create(&user_operation::apply,
                                         boost::mpi::is_commutative<Op, T>::value, &handle_));
  }
  ~user_operation() { MPI_Op_free(&handle_); }
  user_operation(const user_operation&) = delete;
  user_operation& operator=(const user_operation&) = delete;
  MPI_Op handle() const { return handle_; }

 private:
  static void apply(void* left, void* right, int* length, MPI_Datatype*) {
    const T* in = static_cast<const T*>(left);
    T* inout = static_cast<T*>(right);
    for (int i = 0; i < *length; ++i) inout[i] = (*active_)(in[i], inout[i]);
  }
  static inline thread_local const Op* active_ = nullptr;
  MPI_Op handle_ = MPI_OP_NULL;
};

}  // namespace detail

/// Combines the values of all ranks with `op` and gives the result, bitwise the same, to all of
/// them; Boost.MPI's signatures with options last. Collective. `op` may be any function object;
/// declare it commutative with boost::mpi::is_commutative if it is. Types without an MPI datatype
/// are reduced to rank 0 by Boost.MPI and broadcast from there by railpass. Throws
/// boost::mpi::exception if MPI fails.
///
///     double sum = railpass::all_reduce(world, mine, std::plus<double>());
///     railpass::all_reduce(world, gradient.data(), n, total.data(), std::plus<double>());
///     railpass::all_reduce(world, boost::mpi::inplace(gradient.data()), n, std::plus<double>());
struct all_reduce_fn {
  template <class T, class Op, call_option... Options>
  requires(!call_option<Op>) void operator()(const boost::mpi::communicator& comm, const T* in,
                                             int n, T* out, Op op,
                                             const Options&... options) const {
    run(comm, in, n, out, op, collect(options...));
  }

  template <class T, class Op, call_option... Options>
  requires(!call_option<Op>) void operator()(const boost::mpi::communicator& comm,
                                             boost::mpi::inplace_t<T*> inout, int n, Op op,
                                             const Options&... options) const {
    run<T>(comm, nullptr, n, inout.buffer, op, collect(options...));
  }

  template <class T, class Op, call_option... Options>
  requires(!call_option<Op>) void operator()(const boost::mpi::communicator& comm,
                                             boost::mpi::inplace_t<T> inout, Op op,
                                             const Options&... options) const {
    run<T>(comm, nullptr, 1, &inout.buffer, op, collect(options...));
  }

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

 private:
  // `in` is null for an in-place call.
  template <class T, class Op>
  static void run(const boost::mpi::communicator& comm, const T* in, int n, T* out, const Op& op,
                  const call_options& options) {
    if constexpr (!boost::mpi::is_mpi_datatype<T>::value) {
      const std::vector<T> copy = in ? std::vector<T>{} : std::vector<T>(out, out + n);
      boost::mpi::reduce(comm, in ? in : copy.data(), n, out, op, 0);
      broadcast(comm, out, n, 0, options_of(options));
    } else {
      const void* send = in ? static_cast<const void*>(in) : MPI_IN_PLACE;
      const MPI_Datatype type =
          n > 0 ? boost::mpi::get_mpi_datatype<T>(*out) : MPI_Datatype(MPI_BYTE);
      if constexpr (boost::mpi::is_mpi_op<Op, T>::value) {
        detail::check(
            "MPI_Allreduce",
            mpi::all_reduce(send, out, n, type, boost::mpi::is_mpi_op<Op, T>::op(), comm, options));
      } else {
        const detail::user_operation<Op, T> operation(op);
        detail::check("MPI_Allreduce",
                      mpi::all_reduce(send, out, n, type, operation.handle(), comm, options));
      }
    }
  }

  // The arm pinned for an all_reduce means nothing to the broadcast inside it.
  static policy options_of(const call_options& options) { return policy(options.policy); }
};

inline constexpr all_reduce_fn all_reduce{};

}  // namespace railpass

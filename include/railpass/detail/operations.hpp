// SPDX-License-Identifier: BSL-1.0
//
// Parts shared by the facade's reductions: the MPI operation, and the signatures of all_reduce,
// scan and exscan.
#pragma once

#include "railpass/detail/boost_mpi.hpp"

#include <boost/mpi/operations.hpp>

namespace railpass::detail {

/// Any type that is not an option, because a call's last argument may be an option.
template <class Op>
concept operation = !call_option<Op>;

/// An MPI_Op that calls the caller's function object, state included, during the lifetime of this
/// object. MPI calls the operation in the thread that made the call.
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

/// Makes `call` with the MPI_Op of `op` for values of type T; the MPI_Op exists during the call.
template <class T, class Op, class Call>
int with_operation(const Op& op, const Call& call) {
  if constexpr (boost::mpi::is_mpi_op<Op, T>::value) {
    return call(boost::mpi::is_mpi_op<Op, T>::op());
  } else {
    const user_operation<Op, T> made(op);
    return call(made.handle());
  }
}

/// Boost.MPI's signatures of all_reduce, with options last; also those of scan and exscan.
/// `Call::run(comm, in, n, out, op, options)` does the work; `in` may be in_place().
template <class Call>
struct reduction_signatures {
  template <class T, operation Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, int n, T* out, Op op,
                  const Options&... options) const {
    Call::run(comm, in, n, out, op, collect(options...));
  }
  template <class T, operation Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, boost::mpi::inplace_t<T*> inout, int n,
                  Op op, const Options&... options) const {
    Call::run(comm, in_place<T>(), n, inout.buffer, op, collect(options...));
  }
  template <class T, operation Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, boost::mpi::inplace_t<T> inout, Op op,
                  const Options&... options) const {
    Call::run(comm, in_place<T>(), 1, &inout.buffer, op, collect(options...));
  }
  template <class T, operation Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T& in, T& out, Op op,
                  const Options&... options) const {
    Call::run(comm, &in, 1, &out, op, collect(options...));
  }
  template <class T, operation Op, call_option... Options>
  T operator()(const boost::mpi::communicator& comm, const T& in, Op op,
               const Options&... options) const {
    T result{};
    Call::run(comm, &in, 1, &result, op, collect(options...));
    return result;
  }
};

}  // namespace railpass::detail

// SPDX-License-Identifier: BSL-1.0
//
// Tuned collectives for code that uses Boost.MPI, by changing one line:
//
//     #include <railpass/boost_mpi.hpp>
//     namespace mpi = railpass::boost_mpi;  // was boost::mpi; using namespace works, too
//
// The namespace contains all names of Boost.MPI, and communicators that convert to and from
// Boost.MPI's, so that unqualified calls are tuned, too. Collectives have Boost.MPI's signatures,
// which allows explicit template arguments (`gather<int>(...)`); results and errors are those of
// railpass/collectives.hpp. communicator::barrier() and nonblocking calls stay Boost.MPI's.
#pragma once

#include "railpass/collectives.hpp"
#include "railpass/detail/boost_communicators.hpp"

#include <boost/mpi.hpp>
#include <boost/mpi/error_string.hpp>

#include <vector>

namespace railpass::boost_mpi {

// Each name has a using-declaration: with a using-directive, `using namespace railpass::boost_mpi`
// would find both Boost's communicators and railpass'.
using boost::mpi::adjacent_vertices;
using boost::mpi::allocator;
using boost::mpi::any_source;
using boost::mpi::any_tag;
using boost::mpi::bitwise_and;
using boost::mpi::bitwise_or;
using boost::mpi::bitwise_xor;
using boost::mpi::cartesian_dimension;
using boost::mpi::cartesian_dimensions;
using boost::mpi::cartesian_topology;
using boost::mpi::comm_attach;
using boost::mpi::comm_create_kind;
using boost::mpi::comm_duplicate;
using boost::mpi::comm_take_ownership;
using boost::mpi::content;
using boost::mpi::edges;
using boost::mpi::environment;
using boost::mpi::error_string;
using boost::mpi::exception;
using boost::mpi::get;
using boost::mpi::get_content;
using boost::mpi::get_mpi_datatype;
using boost::mpi::group;
using boost::mpi::inplace;
using boost::mpi::inplace_t;
using boost::mpi::is_commutative;
using boost::mpi::is_mpi_builtin_datatype;
using boost::mpi::is_mpi_byte_datatype;
using boost::mpi::is_mpi_complex_datatype;
using boost::mpi::is_mpi_datatype;
using boost::mpi::is_mpi_floating_point_datatype;
using boost::mpi::is_mpi_integer_datatype;
using boost::mpi::is_mpi_logical_datatype;
using boost::mpi::is_mpi_op;
using boost::mpi::logical_xor;
using boost::mpi::maximum;
using boost::mpi::minimum;
using boost::mpi::num_edges;
using boost::mpi::num_vertices;
using boost::mpi::out_degree;
using boost::mpi::out_edges;
using boost::mpi::packed;
using boost::mpi::packed_iarchive;
using boost::mpi::packed_oarchive;
using boost::mpi::packed_skeleton_iarchive;
using boost::mpi::packed_skeleton_oarchive;
using boost::mpi::request;
using boost::mpi::skeleton;
using boost::mpi::skeleton_proxy;
using boost::mpi::source;
using boost::mpi::status;
using boost::mpi::target;
using boost::mpi::test_all;
using boost::mpi::test_any;
using boost::mpi::test_some;
using boost::mpi::timer;
using boost::mpi::vertices;
using boost::mpi::wait_all;
using boost::mpi::wait_any;
using boost::mpi::wait_some;
namespace threading = boost::mpi::threading;

/// True for every T. In an unqualified call, argument-dependent lookup also finds Boost.MPI's
/// function, because its communicator is a base of railpass' communicators. Of two functions that
/// are otherwise equal, overload resolution takes the constrained one.
template <class T>
concept tuned = true;

template <tuned T>
void all_gather(const boost::mpi::communicator& comm, const T& in, std::vector<T>& out) {
  railpass::all_gather(comm, in, out);
}
template <tuned T>
void all_gather(const boost::mpi::communicator& comm, const T& in, T* out) {
  railpass::all_gather(comm, in, out);
}
template <tuned T>
void all_gather(const boost::mpi::communicator& comm, const T* in, int n, std::vector<T>& out) {
  railpass::all_gather(comm, in, n, out);
}
template <tuned T>
void all_gather(const boost::mpi::communicator& comm, const T* in, int n, T* out) {
  railpass::all_gather(comm, in, n, out);
}

template <tuned T, class Op>
void all_reduce(const boost::mpi::communicator& comm, const T* value, int n, T* out, Op op) {
  railpass::all_reduce(comm, value, n, out, op);
}
template <tuned T, class Op>
void all_reduce(const boost::mpi::communicator& comm, const T& value, T& out, Op op) {
  railpass::all_reduce(comm, value, out, op);
}
template <tuned T, class Op>
T all_reduce(const boost::mpi::communicator& comm, const T& value, Op op) {
  return railpass::all_reduce(comm, value, op);
}
template <tuned T, class Op>
void all_reduce(const boost::mpi::communicator& comm, inplace_t<T*> value, int n, Op op) {
  railpass::all_reduce(comm, value, n, op);
}
template <tuned T, class Op>
void all_reduce(const boost::mpi::communicator& comm, inplace_t<T> value, Op op) {
  railpass::all_reduce(comm, value, op);
}

template <tuned T>
void all_to_all(const boost::mpi::communicator& comm, const std::vector<T>& in,
                std::vector<T>& out) {
  railpass::all_to_all(comm, in, out);
}
template <tuned T>
void all_to_all(const boost::mpi::communicator& comm, const T* in, T* out) {
  railpass::all_to_all(comm, in, out);
}
template <tuned T>
void all_to_all(const boost::mpi::communicator& comm, const std::vector<T>& in, int n,
                std::vector<T>& out) {
  railpass::all_to_all(comm, in, n, out);
}
template <tuned T>
void all_to_all(const boost::mpi::communicator& comm, const T* in, int n, T* out) {
  railpass::all_to_all(comm, in, n, out);
}

template <tuned T>
void broadcast(const boost::mpi::communicator& comm, T& value, int root) {
  railpass::broadcast(comm, value, root);
}
template <tuned T>
void broadcast(const boost::mpi::communicator& comm, T* values, int n, int root) {
  railpass::broadcast(comm, values, n, root);
}
template <tuned T>
void broadcast(const boost::mpi::communicator& comm, skeleton_proxy<T>& value, int root) {
  railpass::broadcast(comm, value, root);
}
template <tuned T>
void broadcast(const boost::mpi::communicator& comm, const skeleton_proxy<T>& value, int root) {
  railpass::broadcast(comm, value, root);
}

template <tuned T>
void gather(const boost::mpi::communicator& comm, const T& in, std::vector<T>& out, int root) {
  railpass::gather(comm, in, out, root);
}
template <tuned T>
void gather(const boost::mpi::communicator& comm, const T& in, T* out, int root) {
  railpass::gather(comm, in, out, root);
}
template <tuned T>
void gather(const boost::mpi::communicator& comm, const T& in, int root) {
  railpass::gather(comm, in, root);
}
template <tuned T>
void gather(const boost::mpi::communicator& comm, const T* in, int n, std::vector<T>& out,
            int root) {
  railpass::gather(comm, in, n, out, root);
}
template <tuned T>
void gather(const boost::mpi::communicator& comm, const T* in, int n, T* out, int root) {
  railpass::gather(comm, in, n, out, root);
}
template <tuned T>
void gather(const boost::mpi::communicator& comm, const T* in, int n, int root) {
  railpass::gather(comm, in, n, root);
}

template <tuned T>
void gatherv(const boost::mpi::communicator& comm, const std::vector<T>& in, T* out,
             const std::vector<int>& sizes, const std::vector<int>& displs, int root) {
  railpass::gatherv(comm, in, out, sizes, displs, root);
}
template <tuned T>
void gatherv(const boost::mpi::communicator& comm, const T* in, int in_size, T* out,
             const std::vector<int>& sizes, const std::vector<int>& displs, int root) {
  railpass::gatherv(comm, in, in_size, out, sizes, displs, root);
}
template <tuned T>
void gatherv(const boost::mpi::communicator& comm, const std::vector<T>& in, int root) {
  railpass::gatherv(comm, in, root);
}
template <tuned T>
void gatherv(const boost::mpi::communicator& comm, const T* in, int in_size, int root) {
  railpass::gatherv(comm, in, in_size, root);
}
template <tuned T>
void gatherv(const boost::mpi::communicator& comm, const T* in, int in_size, T* out,
             const std::vector<int>& sizes, int root) {
  railpass::gatherv(comm, in, in_size, out, sizes, root);
}
template <tuned T>
void gatherv(const boost::mpi::communicator& comm, const std::vector<T>& in, T* out,
             const std::vector<int>& sizes, int root) {
  railpass::gatherv(comm, in, out, sizes, root);
}

template <tuned T>
void scatter(const boost::mpi::communicator& comm, const std::vector<T>& in, T& out, int root) {
  railpass::scatter(comm, in, out, root);
}
template <tuned T>
void scatter(const boost::mpi::communicator& comm, const T* in, T& out, int root) {
  railpass::scatter(comm, in, out, root);
}
template <tuned T>
void scatter(const boost::mpi::communicator& comm, T& out, int root) {
  railpass::scatter(comm, out, root);
}
template <tuned T>
void scatter(const boost::mpi::communicator& comm, const std::vector<T>& in, T* out, int n,
             int root) {
  railpass::scatter(comm, in, out, n, root);
}
template <tuned T>
void scatter(const boost::mpi::communicator& comm, const T* in, T* out, int n, int root) {
  railpass::scatter(comm, in, out, n, root);
}
template <tuned T>
void scatter(const boost::mpi::communicator& comm, T* out, int n, int root) {
  railpass::scatter(comm, out, n, root);
}

template <tuned T>
void scatterv(const boost::mpi::communicator& comm, const std::vector<T>& in,
              const std::vector<int>& sizes, const std::vector<int>& displs, T* out, int out_size,
              int root) {
  railpass::scatterv(comm, in, sizes, displs, out, out_size, root);
}
template <tuned T>
void scatterv(const boost::mpi::communicator& comm, const T* in, const std::vector<int>& sizes,
              const std::vector<int>& displs, T* out, int out_size, int root) {
  railpass::scatterv(comm, in, sizes, displs, out, out_size, root);
}
template <tuned T>
void scatterv(const boost::mpi::communicator& comm, T* out, int out_size, int root) {
  railpass::scatterv(comm, out, out_size, root);
}
template <tuned T>
void scatterv(const boost::mpi::communicator& comm, const T* in, const std::vector<int>& sizes,
              T* out, int root) {
  railpass::scatterv(comm, in, sizes, out, root);
}
template <tuned T>
void scatterv(const boost::mpi::communicator& comm, const std::vector<T>& in,
              const std::vector<int>& sizes, T* out, int root) {
  railpass::scatterv(comm, in, sizes, out, root);
}

template <tuned T>
void scatterv(const boost::mpi::communicator& comm, const T* in, T* out, int out_size, int root) {
  railpass::scatterv(comm, in, out, out_size, root);
}
template <tuned T>
void scatterv(const boost::mpi::communicator& comm, const std::vector<T>& in, T* out, int out_size,
              int root) {
  railpass::scatterv(comm, in, out, out_size, root);
}

template <tuned T, class Op>
void reduce(const boost::mpi::communicator& comm, const T& in, T& out, Op op, int root) {
  railpass::reduce(comm, in, out, op, root);
}
template <tuned T, class Op>
void reduce(const boost::mpi::communicator& comm, const T& in, Op op, int root) {
  railpass::reduce(comm, in, op, root);
}
template <tuned T, class Op>
void reduce(const boost::mpi::communicator& comm, const T* in, int n, T* out, Op op, int root) {
  railpass::reduce(comm, in, n, out, op, root);
}
template <tuned T, class Op>
void reduce(const boost::mpi::communicator& comm, const T* in, int n, Op op, int root) {
  railpass::reduce(comm, in, n, op, root);
}
template <tuned T, class Op>
void reduce(const boost::mpi::communicator& comm, const std::vector<T>& in, std::vector<T>& out,
            Op op, int root) {
  railpass::reduce(comm, in, out, op, root);
}
template <tuned T, class Op>
void reduce(const boost::mpi::communicator& comm, const std::vector<T>& in, Op op, int root) {
  railpass::reduce(comm, in, op, root);
}

template <tuned T, class Op>
void scan(const boost::mpi::communicator& comm, const T& in, T& out, Op op) {
  railpass::scan(comm, in, out, op);
}
template <tuned T, class Op>
T scan(const boost::mpi::communicator& comm, const T& in, Op op) {
  return railpass::scan(comm, in, op);
}
template <tuned T, class Op>
void scan(const boost::mpi::communicator& comm, const T* in, int n, T* out, Op op) {
  railpass::scan(comm, in, n, out, op);
}

template <tuned T>
void all_gatherv(const boost::mpi::communicator& comm, const T& in, T* out,
                 const std::vector<int>& sizes) {
  railpass::all_gatherv(comm, in, out, sizes);
}
template <tuned T>
void all_gatherv(const boost::mpi::communicator& comm, const T* in, T* out,
                 const std::vector<int>& sizes) {
  railpass::all_gatherv(comm, in, out, sizes);
}
template <tuned T>
void all_gatherv(const boost::mpi::communicator& comm, const std::vector<T>& in,
                 std::vector<T>& out, const std::vector<int>& sizes) {
  railpass::all_gatherv(comm, in, out, sizes);
}
template <tuned T>
void all_gatherv(const boost::mpi::communicator& comm, const T& in, T* out,
                 const std::vector<int>& sizes, const std::vector<int>& displs) {
  railpass::all_gatherv(comm, in, out, sizes, displs);
}
template <tuned T>
void all_gatherv(const boost::mpi::communicator& comm, const T* in, T* out,
                 const std::vector<int>& sizes, const std::vector<int>& displs) {
  railpass::all_gatherv(comm, in, out, sizes, displs);
}
template <tuned T>
void all_gatherv(const boost::mpi::communicator& comm, const std::vector<T>& in,
                 std::vector<T>& out, const std::vector<int>& sizes,
                 const std::vector<int>& displs) {
  railpass::all_gatherv(comm, in, out, sizes, displs);
}

}  // namespace railpass::boost_mpi

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/reduce_scatter.hpp"

namespace railpass {

/// Combines the values of all ranks with `op`, in rank order unless it commutes, and gives rank k
/// the k-th value of the result, or the k-th `n`; a call that Boost.MPI lacks, in its style, with
/// options last. `in` has a value (or `n`) for each rank. With vectors `n` is what each rank has of
/// `in`, and `out` gets the right size. In place, the rank's own come to the beginning of `inout`,
/// on all ranks. Otherwise as reduce_scatter; railpass::error also if a vector does not have the
/// same number of values for each rank.
struct reduce_scatter_block_fn {
  template <class T, detail::operation Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, int n, T* out, Op op,
                  const Options&... options) const {
    run(comm, in, n, out, op, collect(options...));
  }
  template <class T, detail::operation Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in, T& out, Op op,
                  const Options&... options) const {
    detail::require_length(name, "in", in.size(), std::size_t(comm.size()));
    run(comm, in.data(), 1, &out, op, collect(options...));
  }
  template <class T, detail::operation Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in,
                  std::vector<T>& out, Op op, const Options&... options) const {
    const std::size_t p = std::size_t(comm.size()), n = in.size() / p;
    if (in.size() % p != 0)
      throw error("railpass::reduce_scatter_block: 'in' has " + std::to_string(in.size()) +
                  " elements; expected the same number for each of " + std::to_string(p) +
                  " ranks");
    out.resize(n);
    run(comm, in.data(), detail::count_of(name, std::int64_t(n)), out.data(), op,
        collect(options...));
  }
  template <class T, detail::operation Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, boost::mpi::inplace_t<T*> inout, int n,
                  Op op, const Options&... options) const {
    run(comm, detail::in_place<T>(), n, inout.buffer, op, collect(options...));
  }

 private:
  static constexpr const char* name = "reduce_scatter_block";

  template <class T, class Op>
  static void run(const boost::mpi::communicator& comm, const T* in, int n, T* out, const Op& op,
                  const call_options& options) {
    if constexpr (boost::mpi::is_mpi_datatype<T>::value)
      detail::check("MPI_Reduce_scatter_block", detail::with_operation<T>(op, [&](MPI_Op made) {
                      return mpi::reduce_scatter_block(in, out, n, detail::datatype_of(n, in, out),
                                                       made, comm, options);
                    }));
    else
      detail::reduce_scatter_objects(comm, in, std::size_t(comm.size()) * std::size_t(n), {.n = n},
                                     out, n, op, options);
  }
};

inline constexpr reduce_scatter_block_fn reduce_scatter_block{};

}  // namespace railpass

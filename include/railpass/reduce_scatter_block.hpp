// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/reduce_scatter.hpp"

namespace railpass {

/// Combines the values of all ranks with `op` and gives the k-th value, or the k-th `n` values, of
/// the result to rank k. Boost.MPI has no such call; the signatures follow Boost.MPI's style, with
/// options last. Collective. Otherwise as reduce_scatter.
/// - `in` has a value, or `n` values, for each rank. With vectors, `n` is the length of `in`
///   divided by the number of ranks, and `out` is resized.
/// - `inout` holds the rank's own values at its start after the call, on all ranks.
/// @throws railpass::error also if the length of a vector is not a multiple of the number of ranks
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

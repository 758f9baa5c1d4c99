// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/detail/archives.hpp"
#include "railpass/detail/operations.hpp"

#include <boost/mpi/collectives/reduce.hpp>

#include <vector>

namespace railpass {

namespace detail {

// reduce_scatter and reduce_scatter_block of `total` values without an MPI datatype, `n` of them
// for this rank; `in` may be in place.
template <class T, class Op>
void reduce_scatter_objects(const boost::mpi::communicator& comm, const T* in, std::size_t total,
                            const blocks& layout, T* out, int n, const Op& op,
                            const call_options& options) {
  std::vector<T> all(comm.rank() == 0 ? total : 0);
  const T* const from = in == in_place<T>() ? out : in;
  const int count = count_of("reduce_scatter", std::int64_t(total));
  if (comm.rank() == 0)
    boost::mpi::reduce(comm, from, count, all.data(), op, 0);
  else
    boost::mpi::reduce(comm, from, count, op, 0);
  scatter_archives(comm, all.data(), layout, out, n, 0, policy_of(options));
}

}  // namespace detail

/// Combines the values of all ranks with `op` and gives `sizes[k]` values of the result to rank k,
/// in rank order. Boost.MPI has no such call; the signatures follow Boost.MPI's style, with options
/// last. Collective.
///
/// Values without an MPI datatype are reduced to rank 0 by Boost.MPI, because the operation needs
/// objects, and scattered by railpass; only the option `policy` then applies.
/// - `in` has all values.
/// - `sizes` is equal on all ranks.
/// - `out` has room for the rank's own values; a vector is resized.
/// - `inout` holds the rank's own values at its start after the call, on all ranks.
/// - `op` as for all_reduce.
/// @throws boost::mpi::exception if MPI fails
/// @throws railpass::error if there are too few values or sizes
struct reduce_scatter_fn {
  template <class T, detail::operation Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, const std::vector<int>& sizes,
                  T* out, Op op, const Options&... options) const {
    run(comm, in, {name, comm, sizes}, out, op, collect(options...));
  }
  template <class T, detail::operation Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in,
                  const std::vector<int>& sizes, std::vector<T>& out, Op op,
                  const Options&... options) const {
    const detail::block_arguments layout(name, comm, sizes);
    detail::require_length(name, "in", in.size(), layout.extent());
    out.resize(std::size_t(layout.size(comm.rank())));
    run(comm, in.data(), layout, out.data(), op, collect(options...));
  }
  template <class T, detail::operation Op, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, boost::mpi::inplace_t<T*> inout,
                  const std::vector<int>& sizes, Op op, const Options&... options) const {
    run(comm, detail::in_place<T>(), {name, comm, sizes}, inout.buffer, op, collect(options...));
  }

 private:
  static constexpr const char* name = "reduce_scatter";

  template <class T, class Op>
  static void run(const boost::mpi::communicator& comm, const T* in,
                  const detail::block_arguments& layout, T* out, const Op& op,
                  const call_options& options) {
    if constexpr (boost::mpi::is_mpi_datatype<T>::value)
      detail::check("MPI_Reduce_scatter", detail::with_operation<T>(op, [&](MPI_Op made) {
                      return mpi::reduce_scatter(in, out, layout.get().sizes,
                                                 detail::datatype_of(1, in, out), made, comm,
                                                 options);
                    }));
    else
      detail::reduce_scatter_objects(comm, in, layout.extent(), layout.get(), out,
                                     layout.size(comm.rank()), op, options);
  }
};

inline constexpr reduce_scatter_fn reduce_scatter{};

}  // namespace railpass

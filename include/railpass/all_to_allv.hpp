// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/detail/archives.hpp"

#include <vector>

namespace railpass {

/// Sends `in_sizes[k]` values to rank k and receives `out_sizes[k]` values from rank k. Boost.MPI
/// has no such call; the signatures follow Boost.MPI's style, with options last. Collective.
///
/// Values without an MPI datatype are serialised and sent by an all_to_allv of bytes. The calls do
/// not include all_to_allw, because one T cannot describe blocks of different types; use
/// railpass::mpi::all_to_allw.
/// - `in_sizes[j]` of rank i equals `out_sizes[i]` of rank j.
/// - Rank k's values start at `in_displacements[k]` and `out_displacements[k]`; without
///   displacements the values are in rank order.
/// - `out` has room for all values; a vector is resized.
/// - `inout` holds the sent values before the call and the received values after, with the same
///   sizes, on all ranks.
/// @throws boost::mpi::exception if MPI fails
/// @throws railpass::error if there are too few values, sizes or displacements, or if the archives
///   that a rank sends or receives together are longer than 2^31 - 1 bytes, or
///   if another rank cannot serialise its values
struct all_to_allv_fn {
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in,
                  const std::vector<int>& in_sizes, T* out, const std::vector<int>& out_sizes,
                  const Options&... options) const {
    run(comm, in, {name, comm, in_sizes}, out, {name, comm, out_sizes}, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in,
                  const std::vector<int>& in_sizes, const std::vector<int>& in_displacements,
                  T* out, const std::vector<int>& out_sizes,
                  const std::vector<int>& out_displacements, const Options&... options) const {
    run(comm, in, {name, comm, in_sizes, in_displacements}, out,
        {name, comm, out_sizes, out_displacements}, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in,
                  const std::vector<int>& in_sizes, std::vector<T>& out,
                  const std::vector<int>& out_sizes, const Options&... options) const {
    run(comm, in, {name, comm, in_sizes}, out, {name, comm, out_sizes}, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in,
                  const std::vector<int>& in_sizes, const std::vector<int>& in_displacements,
                  std::vector<T>& out, const std::vector<int>& out_sizes,
                  const std::vector<int>& out_displacements, const Options&... options) const {
    run(comm, in, {name, comm, in_sizes, in_displacements}, out,
        {name, comm, out_sizes, out_displacements}, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, boost::mpi::inplace_t<T*> inout,
                  const std::vector<int>& sizes, const Options&... options) const {
    const detail::block_arguments layout(name, comm, sizes);
    run(comm, detail::in_place<T>(), layout, inout.buffer, layout, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, boost::mpi::inplace_t<T*> inout,
                  const std::vector<int>& sizes, const std::vector<int>& displacements,
                  const Options&... options) const {
    const detail::block_arguments layout(name, comm, sizes, displacements);
    run(comm, detail::in_place<T>(), layout, inout.buffer, layout, collect(options...));
  }

 private:
  static constexpr const char* name = "all_to_allv";

  template <class T>
  static void run(const boost::mpi::communicator& comm, const std::vector<T>& in,
                  const detail::block_arguments& in_layout, std::vector<T>& out,
                  const detail::block_arguments& out_layout, const call_options& options) {
    detail::require_length(name, "in", in.size(), in_layout.extent());
    out.resize(out_layout.extent());
    run(comm, in.data(), in_layout, out.data(), out_layout, options);
  }

  template <class T>
  static void run(const boost::mpi::communicator& comm, const T* in,
                  const detail::block_arguments& in_layout, T* out,
                  const detail::block_arguments& out_layout, const call_options& options) {
    const detail::blocks sent = in_layout.get(), received = out_layout.get();
    if constexpr (boost::mpi::is_mpi_datatype<T>::value) {
      const MPI_Datatype type = detail::datatype_of(1, in, out);
      detail::check("MPI_Alltoallv",
                    mpi::all_to_allv(in, sent.sizes, sent.displacements, type, out, received.sizes,
                                     received.displacements, type, comm, options));
    } else {
      detail::all_to_all_archives(comm, in, sent, out, received, options);
    }
  }
};

inline constexpr all_to_allv_fn all_to_allv{};

}  // namespace railpass

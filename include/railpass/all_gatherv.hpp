// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/detail/archives.hpp"

#include <vector>

namespace railpass {

/// Gathers `sizes[k]` values of rank k on all ranks. Signatures of Boost.MPI with options last.
/// Collective.
///
/// Values without an MPI datatype are serialised and sent by an all_gatherv of bytes.
/// - `out` has room for all values; a vector is resized. Rank k's values start at `out +
///   displacements[k]`; without displacements all values are in rank order.
/// - `sizes` is equal on all ranks.
/// - `inout` already contains the rank's own values in its block, on all ranks.
/// @throws boost::mpi::exception if MPI fails
/// @throws railpass::error if there are too few values, sizes or displacements, or if the archives
///   together are longer than 2^31 - 1 bytes, or
///   if another rank cannot serialise its values
struct all_gatherv_fn {
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T& in, T* out,
                  const std::vector<int>& sizes, const Options&... options) const {
    run(comm, &in, out, {"all_gatherv", comm, sizes}, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, T* out,
                  const std::vector<int>& sizes, const Options&... options) const {
    run(comm, in, out, {"all_gatherv", comm, sizes}, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in,
                  std::vector<T>& out, const std::vector<int>& sizes,
                  const Options&... options) const {
    run(comm, in, out, {"all_gatherv", comm, sizes}, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T& in, T* out,
                  const std::vector<int>& sizes, const std::vector<int>& displacements,
                  const Options&... options) const {
    run(comm, &in, out, {"all_gatherv", comm, sizes, displacements}, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, T* out,
                  const std::vector<int>& sizes, const std::vector<int>& displacements,
                  const Options&... options) const {
    run(comm, in, out, {"all_gatherv", comm, sizes, displacements}, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in,
                  std::vector<T>& out, const std::vector<int>& sizes,
                  const std::vector<int>& displacements, const Options&... options) const {
    run(comm, in, out, {"all_gatherv", comm, sizes, displacements}, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, boost::mpi::inplace_t<T*> inout,
                  const std::vector<int>& sizes, const Options&... options) const {
    run(comm, detail::in_place<T>(), inout.buffer, {"all_gatherv", comm, sizes},
        collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, boost::mpi::inplace_t<T*> inout,
                  const std::vector<int>& sizes, const std::vector<int>& displacements,
                  const Options&... options) const {
    run(comm, detail::in_place<T>(), inout.buffer, {"all_gatherv", comm, sizes, displacements},
        collect(options...));
  }

 private:
  template <class T>
  static void run(const boost::mpi::communicator& comm, const std::vector<T>& in,
                  std::vector<T>& out, const detail::block_arguments& layout,
                  const call_options& options) {
    detail::require_length("all_gatherv", "in", in.size(), std::size_t(layout.size(comm.rank())));
    out.resize(layout.extent());
    run(comm, in.data(), out.data(), layout, options);
  }

  template <class T>
  static void run(const boost::mpi::communicator& comm, const T* in, T* out,
                  const detail::block_arguments& layout, const call_options& options) {
    const int n = layout.size(comm.rank());
    const detail::blocks all = layout.get();
    if constexpr (boost::mpi::is_mpi_datatype<T>::value) {
      const MPI_Datatype type = detail::datatype_of(1, out, in);
      detail::check("MPI_Allgatherv", mpi::all_gatherv(in, n, type, out, all.sizes,
                                                       all.displacements, type, comm, options));
    } else {
      detail::all_gather_archives(comm, in, n, out, all, options);
    }
  }
};

inline constexpr all_gatherv_fn all_gatherv{};

}  // namespace railpass

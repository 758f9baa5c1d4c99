// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/detail/archives.hpp"

#include <vector>

namespace railpass {

/// Gives each rank `n` of the root's values. Signatures of Boost.MPI with options last. Collective.
///
/// Values without an MPI datatype are serialised and sent by a scatterv of bytes.
/// - `in`, `sizes` and `displacements` are used at the root only, except `sizes[rank]` in the forms
///   without `n`. The values of rank k are the `sizes[k]` values from `in + displacements[k]` on;
///   without displacements all values are in rank order. The forms without sizes are for the other
///   ranks.
/// - `inout` is for the root only, whose own values stay in its block.
/// @throws boost::mpi::exception if MPI fails
/// @throws railpass::error if the root has no input, too few sizes or too few displacements, or if
///   the archives together are longer than 2^31 - 1 bytes, or
///   if another rank cannot serialise its values
struct scatterv_fn {
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in,
                  const std::vector<int>& sizes, const std::vector<int>& displacements, T* out,
                  int n, int root, const Options&... options) const {
    run_with(comm, in.data(), out, n, root, collect(options...), sizes, displacements);
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, const std::vector<int>& sizes,
                  const std::vector<int>& displacements, T* out, int n, int root,
                  const Options&... options) const {
    run_with(comm, in, out, n, root, collect(options...), sizes, displacements);
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, T* out, int n, int root,
                  const Options&... options) const {
    detail::require_not_root("scatterv", comm, root);
    run<T>(comm, nullptr, {}, out, n, root, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, const std::vector<int>& sizes,
                  T* out, int root, const Options&... options) const {
    run_with(comm, in, out, size_of(comm, sizes), root, collect(options...), sizes);
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in,
                  const std::vector<int>& sizes, T* out, int root,
                  const Options&... options) const {
    run_with(comm, in.data(), out, size_of(comm, sizes), root, collect(options...), sizes);
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T*, T* out, int n, int root,
                  const Options&... options) const {
    (*this)(comm, out, n, root, options...);
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>&, T* out, int n,
                  int root, const Options&... options) const {
    (*this)(comm, out, n, root, options...);
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, boost::mpi::inplace_t<T*> inout,
                  const std::vector<int>& sizes, const std::vector<int>& displacements, int root,
                  const Options&... options) const {
    detail::require_root("scatterv", comm, root);
    run_with(comm, inout.buffer, const_cast<T*>(detail::in_place<T>()), 0, root,
             collect(options...), sizes, displacements);
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, boost::mpi::inplace_t<T*> inout,
                  const std::vector<int>& sizes, int root, const Options&... options) const {
    detail::require_root("scatterv", comm, root);
    run_with(comm, inout.buffer, const_cast<T*>(detail::in_place<T>()), 0, root,
             collect(options...), sizes);
  }

 private:
  static int size_of(const boost::mpi::communicator& comm, const std::vector<int>& sizes) {
    detail::require_length("scatterv", "sizes", sizes.size(), std::size_t(comm.size()));
    return sizes[std::size_t(comm.rank())];
  }

  template <class T, class... Sizes>
  static void run_with(const boost::mpi::communicator& comm, const T* in, T* out, int n, int root,
                       const call_options& options, const Sizes&... sizes) {
    if (comm.rank() != root) return run<T>(comm, nullptr, {}, out, n, root, options);
    const detail::block_arguments layout("scatterv", comm, sizes...);
    run(comm, in, layout.get(), out, n, root, options);
  }

  template <class T>
  static void run(const boost::mpi::communicator& comm, const T* in, const detail::blocks& layout,
                  T* out, int n, int root, const call_options& options) {
    if constexpr (boost::mpi::is_mpi_datatype<T>::value) {
      const MPI_Datatype type = detail::datatype_of<T>(in ? 1 : n, in, out);
      detail::check("MPI_Scatterv", mpi::scatterv(in, layout.sizes, layout.displacements, type, out,
                                                  n, type, root, comm, options));
    } else {
      detail::scatter_archives(comm, in, layout, out, n, root, options);
    }
  }
};

inline constexpr scatterv_fn scatterv{};

}  // namespace railpass

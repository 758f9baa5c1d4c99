// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/detail/archives.hpp"

#include <vector>

namespace railpass {

/// Gathers the values of all ranks, `n` or all values of `in` per rank, at `root`. Signatures of
/// Boost.MPI with options last. Collective.
///
/// Values without an MPI datatype are serialised and sent by a gatherv of bytes.
/// - `out`, `sizes` and `displacements` are used at the root only; the forms without them are for
///   the other ranks. `sizes[k]` values of rank k are stored at `out + displacements[k]`; without
///   displacements all values are in rank order.
/// - `inout` is for the root only, and already contains the root's own values in its block.
/// @throws boost::mpi::exception if MPI fails
/// @throws railpass::error if the root has no output, too few sizes or too few displacements, or if
///   the archives together are longer than 2^31 - 1 bytes, or
///   if another rank cannot serialise its values
struct gatherv_fn {
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in, T* out,
                  const std::vector<int>& sizes, const std::vector<int>& displacements, int root,
                  const Options&... options) const {
    run_with(comm, in.data(), count_of(in), out, root, collect(options...), sizes, displacements);
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, int n, T* out,
                  const std::vector<int>& sizes, const std::vector<int>& displacements, int root,
                  const Options&... options) const {
    run_with(comm, in, n, out, root, collect(options...), sizes, displacements);
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in, int root,
                  const Options&... options) const {
    detail::require_not_root("gatherv", comm, root);
    run<T>(comm, in.data(), count_of(in), nullptr, {}, root, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, int n, int root,
                  const Options&... options) const {
    detail::require_not_root("gatherv", comm, root);
    run<T>(comm, in, n, nullptr, {}, root, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, int n, T* out,
                  const std::vector<int>& sizes, int root, const Options&... options) const {
    run_with(comm, in, n, out, root, collect(options...), sizes);
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in, T* out,
                  const std::vector<int>& sizes, int root, const Options&... options) const {
    run_with(comm, in.data(), count_of(in), out, root, collect(options...), sizes);
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, boost::mpi::inplace_t<T*> inout,
                  const std::vector<int>& sizes, const std::vector<int>& displacements, int root,
                  const Options&... options) const {
    detail::require_root("gatherv", comm, root);
    run_with(comm, detail::in_place<T>(), 0, inout.buffer, root, collect(options...), sizes,
             displacements);
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, boost::mpi::inplace_t<T*> inout,
                  const std::vector<int>& sizes, int root, const Options&... options) const {
    detail::require_root("gatherv", comm, root);
    run_with(comm, detail::in_place<T>(), 0, inout.buffer, root, collect(options...), sizes);
  }

 private:
  template <class T>
  static int count_of(const std::vector<T>& in) {
    return detail::count_of("gatherv", std::int64_t(in.size()));
  }

  template <class T, class... Sizes>
  static void run_with(const boost::mpi::communicator& comm, const T* in, int n, T* out, int root,
                       const call_options& options, const Sizes&... sizes) {
    if (comm.rank() != root) return run<T>(comm, in, n, nullptr, {}, root, options);
    const detail::block_arguments layout("gatherv", comm, sizes...);
    run(comm, in, n, out, layout.get(), root, options);
  }

  template <class T>
  static void run(const boost::mpi::communicator& comm, const T* in, int n, T* out,
                  const detail::blocks& layout, int root, const call_options& options) {
    if constexpr (boost::mpi::is_mpi_datatype<T>::value) {
      const MPI_Datatype type = detail::datatype_of(out ? 1 : n, out, in);
      detail::check("MPI_Gatherv", mpi::gatherv(in, n, type, out, layout.sizes,
                                                layout.displacements, type, root, comm, options));
    } else {
      detail::gather_archives(comm, in, n, out, layout, root, options);
    }
  }
};

inline constexpr gatherv_fn gatherv{};

}  // namespace railpass

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/detail/archives.hpp"

#include <vector>

namespace railpass {

/// Brings the values of all ranks, `n` or as many as `in` has, to `root`; Boost.MPI's signatures
/// with options last. At the root `sizes[k]` values of rank k come to `out + displacements[k]`, or
/// in rank order without displacements; elsewhere these arguments are not looked at, and the forms
/// without them are for these ranks. In place is for the root, whose own values then are at their
/// place in `inout`. Collective. Values without an MPI datatype are serialised and go by a gatherv
/// of bytes. Throws boost::mpi::exception if MPI fails, railpass::error if the root has no output,
/// too few sizes or displacements, or the archives together are longer than 2^31 - 1 bytes.
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
    const detail::block_arguments places("gatherv", comm, sizes...);
    run(comm, in, n, out, places.get(), root, options);
  }

  template <class T>
  static void run(const boost::mpi::communicator& comm, const T* in, int n, T* out,
                  const detail::blocks& places, int root, const call_options& options) {
    if constexpr (boost::mpi::is_mpi_datatype<T>::value) {
      const MPI_Datatype type = detail::datatype_of(out ? 1 : n, out, in);
      detail::check("MPI_Gatherv", mpi::gatherv(in, n, type, out, places.sizes,
                                                places.displacements, type, root, comm, options));
    } else {
      detail::gather_archives(comm, in, n, out, places, root, options);
    }
  }
};

inline constexpr gatherv_fn gatherv{};

}  // namespace railpass

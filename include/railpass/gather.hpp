// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/detail/archives.hpp"

#include <vector>

namespace railpass {

/// Gathers the values of all ranks, one or `n` per rank, at `root` in rank order. Signatures of
/// Boost.MPI with options last. Collective.
///
/// Values without an MPI datatype are serialised and sent by a gatherv of bytes; options such as
/// `use` and segment_bytes then apply to the gatherv.
/// - `out` is used at the root only: there it has room for all values, and a vector is resized. The
///   forms without `out` are for the other ranks.
/// - `inout` is for the root only, and already contains the root's own values in its block.
/// @throws boost::mpi::exception if MPI fails
/// @throws railpass::error if the root has no output, or if the archives together are longer than
///   2^31 - 1 bytes, or
///   if another rank cannot serialise its values
struct gather_fn {
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T& in, std::vector<T>& out, int root,
                  const Options&... options) const {
    if (comm.rank() == root) out.resize(std::size_t(comm.size()));
    run(comm, &in, 1, out.data(), root, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T& in, T* out, int root,
                  const Options&... options) const {
    run(comm, &in, 1, out, root, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T& in, int root,
                  const Options&... options) const {
    detail::require_not_root("gather", comm, root);
    run<T>(comm, &in, 1, nullptr, root, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, int n, std::vector<T>& out,
                  int root, const Options&... options) const {
    if (comm.rank() == root) out.resize(std::size_t(comm.size()) * std::size_t(n));
    run(comm, in, n, out.data(), root, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, int n, T* out, int root,
                  const Options&... options) const {
    run(comm, in, n, out, root, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, int n, int root,
                  const Options&... options) const {
    detail::require_not_root("gather", comm, root);
    run<T>(comm, in, n, nullptr, root, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, boost::mpi::inplace_t<T*> inout, int n,
                  int root, const Options&... options) const {
    detail::require_root("gather", comm, root);
    run(comm, detail::in_place<T>(), n, inout.buffer, root, collect(options...));
  }

 private:
  template <class T>
  static void run(const boost::mpi::communicator& comm, const T* in, int n, T* out, int root,
                  const call_options& options) {
    if constexpr (boost::mpi::is_mpi_datatype<T>::value) {
      const MPI_Datatype type = detail::datatype_of(n, in, comm.rank() == root ? out : nullptr);
      detail::check("MPI_Gather", mpi::gather(in, n, type, out, n, type, root, comm, options));
    } else {
      detail::gather_archives(comm, in, n, out, {.n = n}, root, options);
    }
  }
};

inline constexpr gather_fn gather{};

}  // namespace railpass

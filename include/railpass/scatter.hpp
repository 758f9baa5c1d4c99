// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/detail/archives.hpp"

#include <vector>

namespace railpass {

/// Gives each rank its values, one or `n`, from the root's values in rank order. Signatures of
/// Boost.MPI with options last. Collective.
///
/// Values without an MPI datatype are serialised and sent by a scatterv of bytes; options such as
/// `use` and segment_bytes then apply to the scatterv.
/// - `in` is used at the root only. The forms without `in` are for the other ranks.
/// - `inout` is for the root only, whose own values stay in its block.
/// @throws boost::mpi::exception if MPI fails
/// @throws railpass::error if the root has no input or too few values, or if the archives together
///   are longer than 2^31 - 1 bytes, or
///   if another rank cannot serialise its values
struct scatter_fn {
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in, T& out, int root,
                  const Options&... options) const {
    run(comm, data(comm, in, 1, root), &out, 1, root, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, T& out, int root,
                  const Options&... options) const {
    run(comm, in, &out, 1, root, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, T& out, int root,
                  const Options&... options) const {
    detail::require_not_root("scatter", comm, root);
    run<T>(comm, nullptr, &out, 1, root, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in, T* out, int n,
                  int root, const Options&... options) const {
    run(comm, data(comm, in, n, root), out, n, root, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, T* out, int n, int root,
                  const Options&... options) const {
    run(comm, in, out, n, root, collect(options...));
  }
  // A constant array and an int are not output and `n`, but input and output.
  template <class T, call_option... Options>
  requires(!std::is_const_v<T>) void operator()(const boost::mpi::communicator& comm, T* out, int n,
                                                int root, const Options&... options) const {
    detail::require_not_root("scatter", comm, root);
    run<T>(comm, nullptr, out, n, root, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, boost::mpi::inplace_t<T*> inout, int n,
                  int root, const Options&... options) const {
    detail::require_root("scatter", comm, root);
    run(comm, inout.buffer, const_cast<T*>(detail::in_place<T>()), n, root, collect(options...));
  }

 private:
  template <class T>
  static const T* data(const boost::mpi::communicator& comm, const std::vector<T>& in, int n,
                       int root) {
    if (comm.rank() == root)
      detail::require_length("scatter", "in", in.size(), std::size_t(comm.size()) * std::size_t(n));
    return in.data();
  }

  template <class T>
  static void run(const boost::mpi::communicator& comm, const T* in, T* out, int n, int root,
                  const call_options& options) {
    if constexpr (boost::mpi::is_mpi_datatype<T>::value) {
      const MPI_Datatype type = detail::datatype_of<T>(n, out, comm.rank() == root ? in : nullptr);
      detail::check("MPI_Scatter", mpi::scatter(in, n, type, out, n, type, root, comm, options));
    } else {
      detail::scatter_archives(comm, in, {.n = n}, out, n, root, options);
    }
  }
};

inline constexpr scatter_fn scatter{};

}  // namespace railpass

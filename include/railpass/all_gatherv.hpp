// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/detail/archives.hpp"

#include <vector>

namespace railpass {

/// Brings the values of all ranks, `sizes[k]` of rank k, to all of them, to `out +
/// displacements[k]` or in rank order without displacements; Boost.MPI's signatures with options
/// last. `sizes` is equal on all ranks. `out` has room for all values; a vector gets the right
/// size. In place, a rank's own values are at their place in `inout` before, on all ranks.
/// Collective. Values without an MPI datatype are serialised and go by an all_gatherv of bytes.
/// Throws boost::mpi::exception if MPI fails, railpass::error if there are too few values, sizes or
/// displacements, or the archives together are longer than 2^31 - 1 bytes.
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
                  std::vector<T>& out, const detail::block_arguments& places,
                  const call_options& options) {
    detail::require_length("all_gatherv", "in", in.size(), std::size_t(places.size(comm.rank())));
    out.resize(places.extent());
    run(comm, in.data(), out.data(), places, options);
  }

  template <class T>
  static void run(const boost::mpi::communicator& comm, const T* in, T* out,
                  const detail::block_arguments& places, const call_options& options) {
    const int n = places.size(comm.rank());
    const detail::blocks all = places.get();
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

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/detail/archives.hpp"

#include <vector>

namespace railpass {

/// Gathers the values of all ranks, one or `n` per rank, on all ranks in rank order. Signatures of
/// Boost.MPI with options last. Collective.
///
/// Values without an MPI datatype are serialised and sent by an all_gatherv of bytes; options such
/// as `use` and segment_bytes then apply to the all_gatherv.
/// - `out` has room for all values; a vector is resized.
/// - `inout` already contains the rank's own values in its block, on all ranks.
/// @throws boost::mpi::exception if MPI fails
/// @throws railpass::error if the archives together are longer than 2^31 - 1 bytes, or
///   if another rank cannot serialise its values
struct all_gather_fn {
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T& in, std::vector<T>& out,
                  const Options&... options) const {
    out.resize(std::size_t(comm.size()));
    run(comm, &in, 1, out.data(), collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T& in, T* out,
                  const Options&... options) const {
    run(comm, &in, 1, out, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, int n, std::vector<T>& out,
                  const Options&... options) const {
    out.resize(std::size_t(comm.size()) * std::size_t(n));
    run(comm, in, n, out.data(), collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, int n, T* out,
                  const Options&... options) const {
    run(comm, in, n, out, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, boost::mpi::inplace_t<T*> inout, int n,
                  const Options&... options) const {
    run(comm, detail::in_place<T>(), n, inout.buffer, collect(options...));
  }

 private:
  template <class T>
  static void run(const boost::mpi::communicator& comm, const T* in, int n, T* out,
                  const call_options& options) {
    if constexpr (boost::mpi::is_mpi_datatype<T>::value) {
      const MPI_Datatype type = detail::datatype_of(n, in, out);
      detail::check("MPI_Allgather", mpi::all_gather(in, n, type, out, n, type, comm, options));
    } else {
      detail::all_gather_archives(comm, in, n, out, {.n = n}, options);
    }
  }
};

inline constexpr all_gather_fn all_gather{};

}  // namespace railpass

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/detail/archives.hpp"

#include <vector>

namespace railpass {

/// Sends value k (or the k-th `n` values) to rank k, and stores the values from rank k as value (or
/// values) k. Signatures of Boost.MPI with options last. Collective.
///
/// Values without an MPI datatype are serialised and sent by an all_to_allv of bytes; options such
/// as `use` and segment_bytes then apply to the all_to_allv.
/// - `out` has as much room as `in`; a vector is resized.
/// - `inout` holds the sent values before the call and the received values after, on all ranks.
/// @throws boost::mpi::exception if MPI fails
/// @throws railpass::error if there are too few values, or if the archives that a rank sends or
///   receives together are longer than 2^31 - 1 bytes, or
///   if another rank cannot serialise its values
struct all_to_all_fn {
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in,
                  std::vector<T>& out, const Options&... options) const {
    run(comm, in, 1, out, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, T* out,
                  const Options&... options) const {
    run(comm, in, 1, out, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in, int n,
                  std::vector<T>& out, const Options&... options) const {
    run(comm, in, n, out, collect(options...));
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
  static void run(const boost::mpi::communicator& comm, const std::vector<T>& in, int n,
                  std::vector<T>& out, const call_options& options) {
    const std::size_t all = std::size_t(comm.size()) * std::size_t(n);
    detail::require_length("all_to_all", "in", in.size(), all);
    out.resize(all);
    run(comm, in.data(), n, out.data(), options);
  }

  template <class T>
  static void run(const boost::mpi::communicator& comm, const T* in, int n, T* out,
                  const call_options& options) {
    if constexpr (boost::mpi::is_mpi_datatype<T>::value) {
      const MPI_Datatype type = detail::datatype_of(n, in, out);
      detail::check("MPI_Alltoall", mpi::all_to_all(in, n, type, out, n, type, comm, options));
    } else {
      detail::all_to_all_archives(comm, in, {.n = n}, out, {.n = n}, options);
    }
  }
};

inline constexpr all_to_all_fn all_to_all{};

}  // namespace railpass

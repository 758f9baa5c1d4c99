// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/detail/archives.hpp"

#include <vector>

namespace railpass {

/// Sends `in_sizes[k]` values to rank k and receives `out_sizes[k]` from it; a call that Boost.MPI
/// lacks, in its style, with options last. Rank k's values begin at `in_displacements[k]` and
/// `out_displacements[k]`, or stand in rank order without displacements. `out` has room for all
/// values; a vector gets the right size. In place, what is received takes the place of what was
/// sent, which has the same sizes, on all ranks. Collective; rank i's in_sizes[j] is rank j's
/// out_sizes[i]. Values without an MPI datatype are serialised and go by an all_to_allv of bytes.
/// Throws boost::mpi::exception if MPI fails, railpass::error if there are too few values, sizes or
/// displacements, or the archives that a rank sends or receives are longer than 2^31 - 1 bytes
/// together.
///
/// There is no all_to_allw like this: its blocks are of different types, which one T cannot say.
/// railpass::mpi::all_to_allw takes MPI's arguments.
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
    const detail::block_arguments places(name, comm, sizes);
    run(comm, detail::in_place<T>(), places, inout.buffer, places, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, boost::mpi::inplace_t<T*> inout,
                  const std::vector<int>& sizes, const std::vector<int>& displacements,
                  const Options&... options) const {
    const detail::block_arguments places(name, comm, sizes, displacements);
    run(comm, detail::in_place<T>(), places, inout.buffer, places, collect(options...));
  }

 private:
  static constexpr const char* name = "all_to_allv";

  template <class T>
  static void run(const boost::mpi::communicator& comm, const std::vector<T>& in,
                  const detail::block_arguments& in_places, std::vector<T>& out,
                  const detail::block_arguments& out_places, const call_options& options) {
    detail::require_length(name, "in", in.size(), in_places.extent());
    out.resize(out_places.extent());
    run(comm, in.data(), in_places, out.data(), out_places, options);
  }

  template <class T>
  static void run(const boost::mpi::communicator& comm, const T* in,
                  const detail::block_arguments& in_places, T* out,
                  const detail::block_arguments& out_places, const call_options& options) {
    const detail::blocks sent = in_places.get(), received = out_places.get();
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

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/broadcast.hpp"

#include <boost/mpi/collectives/gather.hpp>

#include <vector>

namespace railpass {

/// Brings the values of all ranks, one or `n` of each, to `root` in rank order; Boost.MPI's
/// signatures with options last. `out` is looked at on the root only, where a vector gets the right
/// size. Collective. Values without an MPI datatype go to Boost.MPI. Throws boost::mpi::exception
/// if MPI fails.
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
    run<T>(comm, in, n, nullptr, root, collect(options...));
  }

 private:
  template <class T>
  static void run(const boost::mpi::communicator& comm, const T* in, int n, T* out, int root,
                  const call_options& options) {
    if constexpr (boost::mpi::is_mpi_datatype<T>::value) {
      const MPI_Datatype type = boost::mpi::get_mpi_datatype<T>();
      detail::check("MPI_Gather", mpi::gather(in, n, type, out, n, type, root, comm, options));
    } else {
      boost::mpi::gather(comm, in, n, out, root);
    }
  }
};

inline constexpr gather_fn gather{};

}  // namespace railpass

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/broadcast.hpp"

#include <boost/mpi/collectives/scatter.hpp>

#include <vector>

namespace railpass {

/// Gives each rank its values, one or `n`, of those that `root` has in rank order; Boost.MPI's
/// signatures with options last. `in` is looked at on the root only. Collective. Values without an
/// MPI datatype go to Boost.MPI. Throws boost::mpi::exception if MPI fails.
struct scatter_fn {
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in, T& out, int root,
                  const Options&... options) const {
    run(comm, in.data(), &out, 1, root, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, T& out, int root,
                  const Options&... options) const {
    run(comm, in, &out, 1, root, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, T& out, int root,
                  const Options&... options) const {
    run<T>(comm, nullptr, &out, 1, root, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in, T* out, int n,
                  int root, const Options&... options) const {
    run(comm, in.data(), out, n, root, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, T* out, int n, int root,
                  const Options&... options) const {
    run(comm, in, out, n, root, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, T* out, int n, int root,
                  const Options&... options) const {
    run<T>(comm, nullptr, out, n, root, collect(options...));
  }

 private:
  template <class T>
  static void run(const boost::mpi::communicator& comm, const T* in, T* out, int n, int root,
                  const call_options& options) {
    if constexpr (boost::mpi::is_mpi_datatype<T>::value) {
      const MPI_Datatype type = boost::mpi::get_mpi_datatype<T>();
      detail::check("MPI_Scatter", mpi::scatter(in, n, type, out, n, type, root, comm, options));
    } else if (comm.rank() == root) {
      boost::mpi::scatter(comm, in, out, n, root);
    } else {
      boost::mpi::scatter(comm, out, n, root);
    }
  }
};

inline constexpr scatter_fn scatter{};

}  // namespace railpass

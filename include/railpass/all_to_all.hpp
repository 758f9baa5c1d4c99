// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/broadcast.hpp"

#include <boost/mpi/collectives/all_to_all.hpp>

#include <vector>

namespace railpass {

/// Sends value k (or the k-th `n` values) to rank k and puts what rank k sent in place k;
/// Boost.MPI's signatures with options last. A vector gets the right size. Collective. Values
/// without an MPI datatype go to Boost.MPI. Throws boost::mpi::exception if MPI fails.
struct all_to_all_fn {
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in,
                  std::vector<T>& out, const Options&... options) const {
    out.resize(std::size_t(comm.size()));
    run(comm, in.data(), 1, out.data(), collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, T* out,
                  const Options&... options) const {
    run(comm, in, 1, out, collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const std::vector<T>& in, int n,
                  std::vector<T>& out, const Options&... options) const {
    out.resize(std::size_t(comm.size()) * std::size_t(n));
    run(comm, in.data(), n, out.data(), collect(options...));
  }
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, const T* in, int n, T* out,
                  const Options&... options) const {
    run(comm, in, n, out, collect(options...));
  }

 private:
  template <class T>
  static void run(const boost::mpi::communicator& comm, const T* in, int n, T* out,
                  const call_options& options) {
    if constexpr (boost::mpi::is_mpi_datatype<T>::value) {
      const MPI_Datatype type = boost::mpi::get_mpi_datatype<T>();
      detail::check("MPI_Alltoall", mpi::all_to_all(in, n, type, out, n, type, comm, options));
    } else {
      boost::mpi::all_to_all(comm, in, n, out);
    }
  }
};

inline constexpr all_to_all_fn all_to_all{};

}  // namespace railpass

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/detail/boost_mpi.hpp"

#include <boost/mpi/collectives/broadcast.hpp>
#include <boost/mpi/packed_iarchive.hpp>
#include <boost/mpi/packed_oarchive.hpp>

#include <cstdint>
#include <type_traits>

namespace railpass {

/// Sends a value, or an array of `n` values, from `root` to all ranks of `comm`; Boost.MPI's
/// signatures with options last. Collective. Values with an MPI datatype are sent as they are;
/// others are serialised, and the length and the bytes of the archive are broadcast. Throws
/// boost::mpi::exception if MPI fails.
///
///     std::vector<double> model(n);
///     railpass::broadcast(world, model.data(), n, 0);
///     railpass::broadcast(world, model, 0, railpass::use("binomial"));
struct broadcast_fn {
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, T& value, int root,
                  const Options&... options) const {
    if constexpr (has_own_broadcast<T>)
      boost::mpi::broadcast(comm, value, root);  // archives and skeletons: no byte form of ours
    else
      run(comm, &value, 1, root, collect(options...));
  }

  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, T* values, int n, int root,
                  const Options&... options) const {
    run(comm, values, n, root, collect(options...));
  }

 private:
  template <class T>
  static constexpr bool has_own_broadcast =
      std::is_same_v<std::remove_const_t<T>, boost::mpi::packed_oarchive> ||
      std::is_same_v<std::remove_const_t<T>, boost::mpi::packed_iarchive> ||
      std::is_same_v<std::remove_const_t<T>, boost::mpi::packed_skeleton_oarchive> ||
      std::is_same_v<std::remove_const_t<T>, boost::mpi::packed_skeleton_iarchive> ||
      std::is_same_v<std::remove_const_t<T>, boost::mpi::content>;

  template <class T>
  static void run(const boost::mpi::communicator& comm, T* values, int n, int root,
                  const call_options& options) {
    if constexpr (boost::mpi::is_mpi_datatype<T>::value) {
      const MPI_Datatype type =
          n > 0 ? boost::mpi::get_mpi_datatype<T>(*values) : MPI_Datatype(MPI_BYTE);
      detail::check("MPI_Bcast", mpi::broadcast(values, n, type, root, comm, options));
    } else if (comm.rank() == root) {
      boost::mpi::packed_oarchive archive(comm);
      for (int i = 0; i < n; ++i) archive << values[i];
      std::int64_t size = detail::archive_count(archive.size());
      send_bytes(comm, &size, sizeof size, root, options);
      send_bytes(comm, const_cast<void*>(archive.address()), int(size), root, options);
    } else {
      boost::mpi::packed_iarchive archive(comm);
      std::int64_t size = 0;
      send_bytes(comm, &size, sizeof size, root, options);
      archive.resize(std::size_t(size));
      send_bytes(comm, archive.address(), int(size), root, options);
      for (int i = 0; i < n; ++i) archive >> values[i];
    }
  }

  static void send_bytes(const boost::mpi::communicator& comm, void* data, int bytes, int root,
                         const call_options& options) {
    detail::check("MPI_Bcast", mpi::broadcast(data, bytes, MPI_BYTE, root, comm, options));
  }
};

inline constexpr broadcast_fn broadcast{};

}  // namespace railpass

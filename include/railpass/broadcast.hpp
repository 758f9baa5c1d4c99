// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/detail/archives.hpp"

#include <boost/mpi/skeleton_and_content_fwd.hpp>

#include <type_traits>

namespace railpass {

/// Sends a value, or an array of `n` values, from `root` to all ranks of `comm`; Boost.MPI's
/// signatures with options last. Collective. Values with an MPI datatype are sent as they are;
/// others are serialised, and the length and the bytes of the archive are broadcast. So are
/// archives (a packed_oarchive at the root, a packed_iarchive elsewhere) and skeletons; the content
/// of an object goes by its datatype. Throws boost::mpi::exception if MPI fails, railpass::error on
/// all ranks if an archive is longer than 2^31 - 1 bytes.
///
///     std::vector<double> model(n);
///     railpass::broadcast(world, model.data(), n, 0);
///     railpass::broadcast(world, model, 0, railpass::use("binomial"));
struct broadcast_fn {
  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, T& value, int root,
                  const Options&... options) const {
    using bare = std::remove_const_t<T>;
    const call_options all = collect(options...);
    if constexpr (std::is_same_v<bare, boost::mpi::packed_oarchive> ||
                  std::is_same_v<bare, boost::mpi::packed_iarchive>)
      detail::broadcast_archive(comm, value, root, all);
    else if constexpr (std::is_same_v<bare, boost::mpi::packed_skeleton_oarchive> ||
                       std::is_same_v<bare, boost::mpi::packed_skeleton_iarchive>)
      detail::broadcast_archive(comm, value.get_skeleton(), root, all);
    else if constexpr (std::is_same_v<bare, boost::mpi::content>)
      detail::check("MPI_Bcast",
                    mpi::broadcast(MPI_BOTTOM, 1, value.get_mpi_datatype(), root, comm, all));
    else if constexpr (is_skeleton<bare>::value)
      run_skeleton(comm, value.object, root, all);
    else
      run(comm, &value, 1, root, all);
  }

  template <class T, call_option... Options>
  void operator()(const boost::mpi::communicator& comm, T* values, int n, int root,
                  const Options&... options) const {
    run(comm, values, n, root, collect(options...));
  }

 private:
  template <class T>
  struct is_skeleton : std::false_type {};
  template <class T>
  struct is_skeleton<boost::mpi::skeleton_proxy<T>> : std::true_type {};

  template <class T>
  static void run(const boost::mpi::communicator& comm, T* values, int n, int root,
                  const call_options& options) {
    if constexpr (boost::mpi::is_mpi_datatype<T>::value) {
      detail::check("MPI_Bcast", mpi::broadcast(values, n, detail::datatype_of<T>(n, values), root,
                                                comm, options));
    } else if (comm.rank() == root) {
      boost::mpi::packed_oarchive archive(comm);
      detail::save(archive, values, n);
      detail::broadcast_archive(comm, archive, root, options);
    } else {
      boost::mpi::packed_iarchive archive(comm);
      detail::broadcast_archive(comm, archive, root, options);
      detail::load(archive, values, n);
    }
  }

  // Who has a skeleton has included Boost's header; without it these archives are not there, so
  // that they must depend on T.
  template <class T>
  static void run_skeleton(const boost::mpi::communicator& comm, T& object, int root,
                           const call_options& options) {
    if (comm.rank() == root) {
      std::enable_if_t<!std::is_void_v<T>, boost::mpi::packed_skeleton_oarchive> archive(comm);
      archive << object;
      detail::broadcast_archive(comm, archive.get_skeleton(), root, options);
    } else {
      std::enable_if_t<!std::is_void_v<T>, boost::mpi::packed_skeleton_iarchive> archive(comm);
      detail::broadcast_archive(comm, archive.get_skeleton(), root, options);
      archive >> object;
    }
  }
};

inline constexpr broadcast_fn broadcast{};

}  // namespace railpass

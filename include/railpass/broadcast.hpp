// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/detail/archives.hpp"

#include <boost/mpi/skeleton_and_content_fwd.hpp>

#include <type_traits>

namespace railpass {

/// Sends a value, or an array of `n` values, from `root` to all ranks of `comm`. Signatures of
/// Boost.MPI with options last. Collective.
///
/// Values without an MPI datatype are serialised; railpass broadcasts the length and the bytes of
/// the archive. Archives (a packed_oarchive at the root, a packed_iarchive elsewhere) and skeletons
/// are sent the same way. The content of an object is sent by its datatype.
/// @throws boost::mpi::exception if MPI fails
/// @throws railpass::error on every rank if an archive is longer than 2^31 - 1 bytes, and on the
///   other ranks if the root cannot serialise the value; the root throws what stopped it
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
      const detail::serialising by([&] { detail::save(archive, values, n); });
      detail::broadcast_archive(comm, archive, root, options, by);
    } else {
      boost::mpi::packed_iarchive archive(comm);
      detail::broadcast_archive(comm, archive, root, options);
      detail::load(archive, values, n);
    }
  }

  // The skeleton archives are declared only if the caller has included Boost's header for
  // skeletons. Their types therefore must depend on T.
  template <class T>
  static void run_skeleton(const boost::mpi::communicator& comm, T& object, int root,
                           const call_options& options) {
    if (comm.rank() == root) {
      std::enable_if_t<!std::is_void_v<T>, boost::mpi::packed_skeleton_oarchive> archive(comm);
      const detail::serialising by([&] { archive << object; });
      detail::broadcast_archive(comm, archive.get_skeleton(), root, options, by);
    } else {
      std::enable_if_t<!std::is_void_v<T>, boost::mpi::packed_skeleton_iarchive> archive(comm);
      detail::broadcast_archive(comm, archive.get_skeleton(), root, options);
      archive >> object;
    }
  }
};

inline constexpr broadcast_fn broadcast{};

}  // namespace railpass

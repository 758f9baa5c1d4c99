// SPDX-License-Identifier: BSL-1.0
//
// Boost.MPI's communicators in railpass' namespace. Unqualified calls with these types find
// railpass' collectives by argument-dependent lookup.
#pragma once

#include <boost/mpi/cartesian_communicator.hpp>
#include <boost/mpi/communicator.hpp>
#include <boost/mpi/graph_communicator.hpp>
#include <boost/mpi/group.hpp>
#include <boost/mpi/intercommunicator.hpp>
#include <boost/optional.hpp>

#include <concepts>

namespace railpass::boost_mpi {

/// A communicator of Boost.MPI, `Base`, with all its members. Converts to and from `Base`; both
/// share one MPI communicator, as copies of Boost's communicators do.
template <class Base>
class communicator_of : public Base {
 public:
  using Base::Base;
  communicator_of() = default;
  communicator_of(const Base& comm) : Base(comm) {}

  // Communicators made from this communicator are railpass', too.
  communicator_of<boost::mpi::communicator> split(int color) const { return Base::split(color); }
  communicator_of<boost::mpi::communicator> split(int color, int key) const {
    return Base::split(color, key);
  }
  boost::optional<communicator_of<boost::mpi::intercommunicator>> as_intercommunicator() const {
    return convert(Base::as_intercommunicator());
  }
  boost::optional<communicator_of<boost::mpi::graph_communicator>> as_graph_communicator() const {
    return convert(Base::as_graph_communicator());
  }
  boost::optional<communicator_of<boost::mpi::cartesian_communicator>> as_cartesian_communicator()
      const {
    return convert(Base::as_cartesian_communicator());
  }
  communicator_of<boost::mpi::communicator> merge(
      bool high) const requires std::same_as<Base, boost::mpi::intercommunicator> {
    return Base::merge(high);
  }

 private:
  template <class Other>
  static boost::optional<communicator_of<Other>> convert(const boost::optional<Other>& comm) {
    return boost::optional<communicator_of<Other>>(comm);
  }
};

using communicator = communicator_of<boost::mpi::communicator>;
using intercommunicator = communicator_of<boost::mpi::intercommunicator>;
using graph_communicator = communicator_of<boost::mpi::graph_communicator>;
using cartesian_communicator = communicator_of<boost::mpi::cartesian_communicator>;

}  // namespace railpass::boost_mpi

namespace boost {

template <>
struct graph_traits<railpass::boost_mpi::graph_communicator>
    : graph_traits<mpi::graph_communicator> {};
template <>
struct property_map<railpass::boost_mpi::graph_communicator, vertex_index_t>
    : property_map<mpi::graph_communicator, vertex_index_t> {};

}  // namespace boost

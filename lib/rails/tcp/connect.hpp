// SPDX-License-Identifier: BSL-1.0
//
// Connections between all ranks, one per rail and pair.
#pragma once

#include "lib/base/descriptor.hpp"
#include "lib/rails/tcp/interfaces.hpp"

#include <mpi.h>

#include <string>
#include <vector>

namespace railpass::internal::tcp {

/// The connections of one rail: nonblocking sockets by rank, none to this rank itself.
struct connected_rail {
  interface local;
  std::vector<file_descriptor> sockets;
};

/// Connects all ranks of `comm` over every rail. `rails`: names for find_interface, the same number
/// on all ranks. Sockets to and from other hosts are bound to the interface's device; a socket that
/// the kernel does not let be bound is refused. Ranks of this host connect through its loopback
/// device. Programs that are executed inherit no socket; listeners close at the end. Both ends
/// prove that they know a key that MPI has distributed (greeting.hpp). At most 64 connections may
/// try at a time, for 5 s each. Raises the limit of open descriptors if necessary and permitted.
///
/// Collective. A failure on one rank throws error on all ranks.
std::vector<connected_rail> connect_all(MPI_Comm comm, const std::vector<std::string>& rails);

}  // namespace railpass::internal::tcp

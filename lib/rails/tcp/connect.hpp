// SPDX-License-Identifier: BSL-1.0
//
// Connections between all ranks, one per rail and pair.
#pragma once

#include "lib/rails/tcp/interfaces.hpp"

#include <mpi.h>

#include <string>
#include <utility>  // which Asio 1.74's awaitable.hpp needs, too
#include <vector>

namespace railpass::internal::tcp {

/// A socket that is closed with its owner; -1: none.
class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept;
  descriptor(const descriptor&) = delete;
  ~descriptor();
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

/// The connections of one rail: nonblocking sockets by rank, none to this rank itself.
struct connected_rail {
  interface local;
  std::vector<descriptor> sockets;
};

/// Connects all ranks of `comm` over every rail; `rails` are names as find_interface takes them,
/// the same number on all ranks. Sockets to other hosts are bound to the interface's device (a
/// socket that the kernel does not let be bound is refused), and so are those that listen for them;
/// ranks of this host are listened for on its loopback device. All are closed when a program is
/// executed, listeners at the end. Both ends prove that they know a key that was handed to the
/// ranks over MPI (greeting.hpp); whoever does not is hung up on, at most 64 are let try at once,
/// and 5 s each. The limit of open descriptors is raised as far as it must be and may be.
///
/// Collective. What fails on one rank is thrown as error on all.
std::vector<connected_rail> connect_all(MPI_Comm comm, const std::vector<std::string>& rails);

}  // namespace railpass::internal::tcp

// SPDX-License-Identifier: BSL-1.0
//
// Connections between all ranks, one per rail and pair.
#pragma once

#include "lib/rails/tcp/interfaces.hpp"

#include <mpi.h>

#include <string>
#include <utility>  // which Asio 1.74's awaitable.hpp needs, too
#include <vector>

namespace railpass::tcp {

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

 private:
  int fd_ = -1;
};

/// The connections of one rail: nonblocking sockets by rank, none to this rank itself.
struct connected_rail {
  interface local;
  std::vector<descriptor> sockets;
};

/// Connects all ranks of `comm` over every rail; `rails` are names as find_interface takes them,
/// the same number on all ranks. Sockets to other hosts are bound to the interface (a socket that
/// the kernel does not let be bound is refused), listeners listen on the rails' addresses only and
/// are closed at the end. Each end of a connection shows a random word of 32 bytes that was handed
/// to it over MPI; whoever shows another one is hung up on.
///
/// Collective. What fails on one rank is thrown as error on all.
std::vector<connected_rail> connect_all(MPI_Comm comm, const std::vector<std::string>& rails);

}  // namespace railpass::tcp

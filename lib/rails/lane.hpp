// SPDX-License-Identifier: BSL-1.0
//
// What a communicator has of a transport that other communicators may use, too.
#pragma once

#include "lib/rails/open_transport.hpp"

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace railpass {

/// Which of a lane's messages: they never meet.
enum class traffic : std::uint8_t {
  user,      ///< those of railpass/rails.hpp
  schedules  ///< those of collectives
};

/// The messages of one communicator, which meet no other's. Ranks are the communicator's. Several
/// threads may use it.
class lane {
 public:
  /// `members[r]` is what rank r is to the transport, and `number` belongs to no other lane on any
  /// of the members. `comm` has the members in this order, is used by nobody else and must live
  /// until the lane is closed. The transport must have been held for it: see open_transport.
  lane(std::shared_ptr<open_transport> over, MPI_Comm comm, std::uint32_t number,
       std::vector<int> members);

  int num_ranks() const { return int(members_.size()); }
  open_transport& transport() const { return *over_; }
  /// What rank r of the communicator is to the transport.
  int peer_of(int rank) const { return members_[std::size_t(rank)]; }
  /// The reverse.
  int rank_of(int peer) const { return ranks_[std::size_t(peer)]; }

  /// As those of the transport. 0 <= rank < num_ranks(); `source` may be any_source.
  transport::operation_ptr send(traffic which, int rank, int tag,
                                std::vector<transport::piece> from,
                                std::shared_ptr<void> owner = {});
  transport::operation_ptr receive(traffic which, int source, int tag,
                                   std::vector<transport::piece> to);
  transport::operation_ptr receive(traffic which, int source, int tag,
                                   std::function<transport::piece(std::int64_t)> allocate);

  /// Blocks until all messages of this kind have left.
  void wait_until_sent(traffic which);

  /// Ends it, as all its ranks do, blocking until they are all there and their messages have
  /// arrived; those that nobody has received are dropped. If all ranks of the transport are here
  /// and no other lane uses it on any of them, it ends, too. Throws error if large messages are
  /// left that nobody has asked for 10 s after all were there, or the transport has failed.
  void close();

 private:
  transport::channel channel_of(traffic which) const {
    return 2 * number_ + transport::channel(which);
  }
  int peer_or_any(int source) const {
    return source == transport::any_source ? source : peer_of(source);
  }
  void empty(std::int64_t expected, bool last);

  std::shared_ptr<open_transport> over_;
  MPI_Comm comm_;
  std::uint32_t number_;
  std::vector<int> members_, ranks_;
  std::vector<std::int64_t> sent_;  // messages to each rank; guarded by the transport's lock
  bool closed_ = false;
};

}  // namespace railpass

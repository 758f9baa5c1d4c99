// SPDX-License-Identifier: BSL-1.0
//
// A communicator's share of a transport that other communicators may use, too.
#pragma once

#include "lib/rails/open_transport.hpp"

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace railpass::internal {

/// Messages between the ranks of one communicator, separate from messages of other channels. A
/// communicator has a channel for the user's messages and a channel for messages of collectives.
/// Ranks are ranks of the communicator. Several threads may use a channel.
class rail_channel {
 public:
  /// `members[r]` is the transport's rank of rank r. `number` belongs to no other channel on any of
  /// the members. `comm` has the members in this order, and must live until the channel is closed;
  /// no other communication may use `comm` during close(). MPI_COMM_NULL: a channel of collectives,
  /// which leave() ends. The caller holds the transport for the channel: see open_transport.
  rail_channel(std::shared_ptr<open_transport> over, MPI_Comm comm, std::uint32_t number,
               std::vector<int> members);

  int num_ranks() const { return int(members_.size()); }
  open_transport& transport() const { return *over_; }
  /// The transport's rank of the communicator's rank r.
  int peer_of(int rank) const { return members_[std::size_t(rank)]; }
  /// The inverse of peer_of().
  int rank_of(int peer) const { return ranks_[std::size_t(peer)]; }

  /// Like the transport's functions. 0 <= rank < num_ranks(); `source` may be any_source.
  transport::operation_ptr send(int rank, int tag, std::vector<transport::piece> from,
                                std::shared_ptr<void> owner = {});
  transport::operation_ptr receive(int source, int tag, std::vector<transport::piece> to);
  transport::operation_ptr receive(int source, int tag,
                                   std::function<transport::piece(std::int64_t)> allocate);

  /// Ends the channel. Collective: blocks until all ranks have called and their messages have
  /// arrived. Messages that were never received are dropped. The transport ends, too, if the
  /// channel has all of its ranks and no rank uses another channel. Throws error on all ranks if
  /// messages have not arrived 10 s after the last call, or if the transport has failed; the
  /// channel has ended then, too.
  void close();

  /// Ends the channel without the other ranks. All messages that its ranks sent here were received,
  /// and no further message follows. Returns false if the transport cannot be used any more. Local.
  bool leave();

 private:
  bool of_collectives() const { return comm_ == MPI_COMM_NULL; }
  int peer_or_any(int source) const {
    return source == transport::any_source ? source : peer_of(source);
  }
  void empty(std::int64_t expected);

  std::shared_ptr<open_transport> over_;
  MPI_Comm comm_;
  transport::channel number_;
  std::vector<int> members_, ranks_;
  std::vector<std::int64_t> sent_;  // messages to each rank; guarded by the transport's lock
  bool closed_ = false;
};

}  // namespace railpass::internal

// SPDX-License-Identifier: BSL-1.0
//
// What a communicator has of a transport that others may use, too.
#pragma once

#include "lib/rails/open_transport.hpp"

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace railpass::internal {

/// Messages between the ranks of one communicator, which meet no other lane's: a communicator has
/// one for the user's and one for those of collectives. Ranks are the communicator's. Several
/// threads may use it.
class lane {
 public:
  /// `members[r]` is what rank r is to the transport, and `number` belongs to no other lane on any
  /// of the members. `comm` has the members in this order; nobody else communicates on it while the
  /// lane is closed, and it must live until then; MPI_COMM_NULL for a lane that leave() ends. The
  /// transport must have been held for it: see open_transport.
  lane(std::shared_ptr<open_transport> over, MPI_Comm comm, std::uint32_t number,
       std::vector<int> members);

  int num_ranks() const { return int(members_.size()); }
  open_transport& transport() const { return *over_; }
  /// What rank r of the communicator is to the transport.
  int peer_of(int rank) const { return members_[std::size_t(rank)]; }
  /// The reverse.
  int rank_of(int peer) const { return ranks_[std::size_t(peer)]; }

  /// As those of the transport. 0 <= rank < num_ranks(); `source` may be any_source.
  transport::operation_ptr send(int rank, int tag, std::vector<transport::piece> from,
                                std::shared_ptr<void> owner = {});
  transport::operation_ptr receive(int source, int tag, std::vector<transport::piece> to);
  transport::operation_ptr receive(int source, int tag,
                                   std::function<transport::piece(std::int64_t)> allocate);

  /// Ends it, as all its ranks do, blocking until they are all there and their messages have
  /// arrived; those that nobody has received are dropped. If all ranks of the transport are here
  /// and no other lane uses it on any of them, it ends, too. Throws error, on all ranks alike, if
  /// messages have not arrived 10 s after all were there, or the transport has failed; the lane has
  /// ended then, too.
  void close();

  /// Ends it without the others: its ranks have sent nothing here but what was received, and will
  /// not. False if nobody can use the transport any more. Local.
  bool leave();

 private:
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

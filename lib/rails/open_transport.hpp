// SPDX-License-Identifier: BSL-1.0
//
// A transport over real rails, shared by threads and by channels of several communicators: who may
// use it, and when it ends.
#pragma once

#include "lib/rails/posting.hpp"
#include "lib/rails/registry.hpp"
#include "lib/rails/waiting.hpp"
#include "railpass/transport/transport.hpp"

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace railpass::internal {

/// Several threads may use a transport. A lock is held while a thread works with the transport,
/// which makes the messages of all threads progress.
class open_transport {
 public:
  /// Opens the listed rails between all ranks of `comm`, which must live until the rails are open.
  /// Messages that rails send by MPI use the tags `over`. Collective; throws error on all ranks.
  /// `silence_s`: see transport_options.
  open_transport(MPI_Comm comm, const mpi_tags& over, const std::string& rails,
                 const std::string& strategy, double silence_s);
  ~open_transport();

  int rank() const { return rank_; }
  int num_ranks() const { return num_ranks_; }
  MPI_Group group() const { return group_; }
  /// The arguments of the constructor.
  const std::string& rails() const { return names_; }
  const std::string& strategy() const { return strategy_; }
  /// Equal on its ranks, and different from the numbers of other transports.
  std::uint64_t id() const { return id_; }

  /// Why other processes of this host cannot see the load of the rails; empty: they can.
  const std::string& board_problem() const { return board_problem_; }

  /// Works with the transport, under the lock.
  template <class Work>
  auto with(const Work& work) {
    const std::unique_lock lock = locked();
    return work(*transport_);
  }

  /// Blocks until `done` returns true (returns true), or the deadline has passed (returns false).
  /// Throws error if the rails have failed.
  template <class Done>
  bool wait(const Done& done, double deadline_s = 0) {
    for (unsigned empty = 0;; ++empty) {
      {
        const std::unique_lock lock = locked();
        if (done(*transport_)) return true;
        if (transport_->progress()) empty = 0;
      }
      if (deadline_s > 0 && empty > 0 && steady_clock_s() > deadline_s) return false;
      give_way(empty);
    }
  }

  /// Waits until an MPI request has ended, even if the transport fails.
  void wait_for(MPI_Request& request);

  /// Call after nothing has moved `empty` times in a row: see waiting. Lets waiting threads have
  /// the lock first, and makes MPI progress once after a sleep, which other ranks may need.
  void give_way(unsigned empty);

  /// Numbers of channels, unique on all ranks. Channel 0 is for measuring; the founding channel is
  /// for the communicator that opened the transport. new_channel() returns a further number, or
  /// nothing if no number is left.
  static constexpr std::uint32_t founding_channel = 1;
  std::optional<std::uint32_t> new_channel();
  /// Announces a further channel. False if the transport has failed or, unless the first rank of
  /// the channel `has_held` it, may be about to end.
  bool hold(bool has_held);
  /// The channel was not made, or has ended without the other ranks. False if the transport cannot
  /// be used any more.
  bool release();
  /// A channel ends without the other ranks, so the last channel is unknown: the transport lives
  /// until MPI ends.
  void keep();
  /// A channel is about to end. Returns the number of other channels on this rank. If the channel
  /// spans all ranks, the transport may end with it, and takes no new channels until end_release().
  int begin_release(bool spans);
  void end_release(bool may_go_on);

  /// Ends the transport. Collective: blocks until all ranks have called and all messages have left.
  /// Frees the communicator. Throws error if the transport cannot end, or has not ended 10 s after
  /// the last rank's call; the communicator is then not freed.
  void close();
  /// Whether the transport has ended, with or without an error.
  bool closed() const { return closed_; }

  /// MPI ends on this rank: says farewell to the other ranks once all messages have left, without
  /// waiting. Returns whether nothing is left to do: the other ranks have said farewell, too, or
  /// the transport has failed.
  bool leave();
  /// A rank that would miss a message whose send has ended, if this rank stopped making progress.
  std::optional<int> owed();
  /// Why the rails have failed.
  std::string failure();
  /// Says farewell at once, unless the rails have failed: this rank makes no more progress.
  void part();
  /// The last call before MPI has ended.
  void end();

 private:
  std::unique_lock<std::mutex> locked();

  MPI_Comm comm_;
  MPI_Group group_ = MPI_GROUP_NULL;
  int rank_ = 0, num_ranks_ = 1;
  std::string names_, strategy_;
  std::uint64_t id_ = 0;
  std::string board_problem_;
  std::mutex mutex_;  // guards the next members
  std::optional<transport::transport> transport_;
  std::optional<posting> posting_;
  int lanes_ = 0;
  bool offered_ = true, kept_ = false;
  std::uint32_t last_channel_ = 0;
  std::atomic<int> locked_out_{0};  // threads that want the lock
  std::optional<waiting> waiting_;
  std::atomic<bool> closed_{false};
};

}  // namespace railpass::internal

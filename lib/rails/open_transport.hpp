// SPDX-License-Identifier: BSL-1.0
//
// A transport over real rails, shared by the threads and the lanes of several communicators: who
// may use it, and when it ends.
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

/// Several threads may use it: one lock, held while one of them works with the transport, which
/// lets the messages of all advance.
class open_transport {
 public:
  /// Opens the rails of the list between all ranks of `comm`, which is needed until they are open;
  /// what they send by MPI goes `over` its place. Collective; throws error on all ranks alike. For
  /// `silence_s` see transport_options.
  open_transport(MPI_Comm comm, const mpi_place& over, const std::string& rails,
                 const std::string& strategy, double silence_s);
  ~open_transport();

  int rank() const { return rank_; }
  int num_ranks() const { return num_ranks_; }
  MPI_Group group() const { return group_; }
  /// What it was opened with.
  const std::string& rails() const { return names_; }
  const std::string& strategy() const { return strategy_; }
  /// The same on its ranks, and no other transport's.
  std::uint64_t id() const { return id_; }

  /// Why other processes of this host are not shown what it carries; empty: they are.
  const std::string& board_problem() const { return board_problem_; }

  /// Works with the transport; nobody else does meanwhile.
  template <class Work>
  auto with(const Work& work) {
    const std::unique_lock lock = locked();
    return work(*transport_);
  }

  /// Blocks until `done` says so of the transport, or the deadline is over; which of these. Throws
  /// error if the rails have failed.
  template <class Done>
  bool wait(const Done& done, double deadline_s = 0) {
    for (int empty = 0;; ++empty) {
      {
        const std::unique_lock lock = locked();
        if (done(*transport_)) return true;
        if (transport_->progress()) empty = 0;
      }
      if (deadline_s > 0 && empty > 0 && steady_clock_s() > deadline_s) return false;
      give_way(empty);
    }
  }

  /// The same until a request of MPI's has ended, whatever becomes of the transport.
  void wait_for(MPI_Request& request);

  /// Nothing has moved `empty` times in a row: see waiting. Lets threads that want the lock have it
  /// first, and MPI advance once after a sleep: others may need that.
  void give_way(int empty);

  /// Numbers of lanes that no other one has on any rank: measuring happens on the first one, the
  /// one it was opened for has the second. The others belong to who asks; nothing if there are none
  /// left.
  static constexpr std::uint32_t measuring_lane = 0, founding_lane = 1;
  std::optional<std::uint32_t> new_lane();
  /// One more lane is about to use it. False if it cannot: the transport has failed or, unless the
  /// first rank of the lane `has_held` it, may be about to end.
  bool hold(bool has_held);
  /// The lane has come to nothing, or has ended without the others. False if nobody can use the
  /// transport any more.
  bool release();
  /// A lane ends without the others, so nobody knows which is the last one: the transport lives
  /// until MPI ends.
  void keep();
  /// A lane is about to end. Returns how many others there are on this rank. If it spans all ranks,
  /// the transport may end with it: no new ones until end_release.
  int begin_release(bool spans);
  void end_release(bool may_go_on);

  /// Ends it, as all ranks do: blocks until they are all there and all messages have left, and
  /// frees the communicator it was opened over. Collective. Throws error if it cannot end, or has
  /// not 10 s after all were there; then the communicator is not freed.
  void close();
  /// Whether it has ended, well or not.
  bool closed() const { return closed_; }

  /// MPI ends on this rank: says farewell to the others once all messages have left, and waits for
  /// none of them. Whether that is all there is to do: the others have said so, too, or it has
  /// failed.
  bool leave();
  /// A rank that would not get a message whose send has ended if this one let nothing advance any
  /// more.
  std::optional<int> owed();
  /// Why the rails have failed.
  std::string failure();
  /// Says farewell at once, if the rails have not failed: this rank lets nothing advance any more.
  void part();
  /// The last that is called before MPI has ended.
  void end();

 private:
  std::unique_lock<std::mutex> locked();

  MPI_Comm comm_;
  MPI_Group group_ = MPI_GROUP_NULL;
  int rank_ = 0, num_ranks_ = 1;
  std::string names_, strategy_;
  std::uint64_t id_ = 0;
  std::string board_problem_;
  std::mutex mutex_;  // guards these
  std::optional<transport::transport> transport_;
  std::optional<posting> posting_;
  int lanes_ = 0;
  bool offered_ = true, kept_ = false;
  std::uint32_t last_lane_ = 0;
  std::atomic<int> locked_out_{0};  // threads that want the lock
  std::optional<waiting> waiting_;
  std::atomic<bool> closed_{false};
};

}  // namespace railpass::internal

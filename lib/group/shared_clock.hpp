// SPDX-License-Identifier: BSL-1.0
//
// Which clock a process measures by. Two processes with equal marks read the same clock, so that
// times of both can be compared. Others learn how far their clocks are from that of one rank.
#pragma once

#include "railpass/select/lockstep/clock_offset.hpp"

#include <mpi.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <type_traits>
#include <vector>

namespace railpass::internal {

/// A number for the steady clock of this process: of the boot of its kernel and of its time
/// namespace. 0: unknown. Allocates nothing.
std::uint64_t mark_of_clock();

/// What a rank that knows the agreed clock tells another one, as words of a message.
struct told_clock {
  std::uint64_t mark = 0;  ///< of the clock by which the rank answers
  select::clock_answer answer;
};
static_assert(std::is_trivially_copyable_v<told_clock>);

/// The clock of a communicator's rank 0, which all its ranks have agreed on, as far as this rank
/// knows it. Several threads may ask.
class shared_clock {
 public:
  /// From the marks of all ranks: whether they can agree, and whom this rank asks. Throws
  /// std::bad_alloc.
  shared_clock(std::span<const std::int64_t> mark_of_rank, int rank);

  /// Before compare(): no rank has an unknown clock, and not all have the same one. The same on all
  /// ranks.
  bool can_agree() const { return firsts_.size() > 1; }

  /// Once, if can_agree(): the first rank with each clock asks another one, and tells the others
  /// with that clock. Collective; allocates nothing. Returns an MPI error code.
  int compare(MPI_Comm comm);

  /// By now.
  select::clock_offset known() const;
  /// What this rank answers to a question that came at `came_s`.
  told_clock tell(double came_s) const;
  /// What was answered to a question that left at `asked_s`.
  void learn(const told_clock& told, double asked_s, double received_s);

 private:
  int ask(MPI_Comm comm, int teacher);
  int answer(MPI_Comm comm, int pupil);
  int compare_hosts(MPI_Comm comm);
  int tell_others(MPI_Comm comm);

  std::vector<int> firsts_;   // the first rank with each clock, in order; empty: not known
  std::vector<int> alike_;    // ranks with this one's clock
  int rank_ = 0, place_ = 0;  // in `alike_`
  int clock_ = 0;             // in `firsts_`
  mutable std::mutex mutex_;
  select::clock_offset offset_;
};

}  // namespace railpass::internal

// SPDX-License-Identifier: BSL-1.0
//
// Identifies the clock of a process, and estimates the offset of its clock from rank 0's clock.
// Processes with equal marks read the same clock and can compare times directly.
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

/// Identifies the steady clock of this process by the boot of its kernel and by its time namespace.
/// 0: unknown. Allocates nothing.
std::uint64_t mark_of_clock();

/// Answer from a rank that knows the agreed clock, as words of a message.
struct told_clock {
  std::uint64_t mark = 0;  ///< of the clock by which the rank answers
  select::clock_answer answer;
};
static_assert(std::is_trivially_copyable_v<told_clock>);

/// The clock of a communicator's rank 0, on which all ranks agree, as far as this rank knows its
/// offset. Several threads may call at the same time.
class shared_clock {
 public:
  /// Derives from the marks of all ranks whether the ranks can agree, and which rank this rank
  /// asks. Throws std::bad_alloc.
  shared_clock(std::span<const std::int64_t> mark_of_rank, int rank);

  /// Whether compare() is needed and possible: every rank's clock is known, and at least two clocks
  /// differ. Valid before compare(); equal on all ranks.
  bool can_agree() const { return firsts_.size() > 1; }

  /// Call once, if can_agree(). The first rank with each clock asks a rank with a different clock,
  /// and passes the answer to the ranks with its own clock. Collective; allocates nothing. Returns
  /// an MPI error code.
  int compare(MPI_Comm comm);

  /// The offset known so far.
  select::clock_offset known() const;
  /// Answers a question that arrived at `came_s` (seconds, this rank's clock).
  told_clock tell(double came_s) const;
  /// Takes in the answer to a question that left at `asked_s`; the answer arrived at `received_s`.
  void learn(const told_clock& told, double asked_s, double received_s);

 private:
  int ask(MPI_Comm comm, int teacher);
  int answer(MPI_Comm comm, int pupil);
  int compare_hosts(MPI_Comm comm);
  int tell_others(MPI_Comm comm);

  std::vector<int> firsts_;      // the first rank with each clock; empty: a clock is unknown
  std::vector<int> alike_;       // ranks with this rank's clock
  int rank_ = 0, position_ = 0;  // in `alike_`
  int clock_ = 0;                // in `firsts_`
  mutable std::mutex mutex_;
  select::clock_offset offset_;
};

}  // namespace railpass::internal

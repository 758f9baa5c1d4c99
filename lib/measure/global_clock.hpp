// SPDX-License-Identifier: BSL-1.0
//
// Rounds that begin on all ranks of MPI_COMM_WORLD at one instant of a common clock.
#pragma once

#include "lib/measure/round_time.hpp"

#include <deque>
#include <vector>

namespace railpass::internal::measure {

class global_clock {
 public:
  /// Collective, as all that follows but now_s().
  global_clock();

  /// Estimates the clock again, from new and from the last times, because clocks drift. Useful
  /// every half second.
  void synchronise();

  /// Waits for the common instant at which a round begins; that instant, or infinity if this rank
  /// was late for it.
  double begin_round();
  double now_s() const;
  /// Whether any rank was late for a round; all must say the same.
  void round_was_late(bool late) { ahead_.began(late); }

 private:
  clock_model model_{};
  std::deque<std::vector<ping>> seen_;  // the latest
  int rank_ = 0, num_ranks_ = 1;
  announcement ahead_{1e-3};
};

}  // namespace railpass::internal::measure

// SPDX-License-Identifier: BSL-1.0
//
// Who came late to a call, and what the call took without that. Clocks of hosts are not compared:
// each rank knows how long it was inside the call, and how long before that the context's last call
// had ended on it. If that ended everywhere at once, the largest and the smallest such gap are as
// far apart as the ranks came.
#pragma once

#include "collectives/collective.hpp"

#include <algorithm>
#include <optional>

namespace railpass::select {

/// One timed call, over all ranks.
struct call_times {
  double longest_s = 0;   ///< inside the call, on the rank for which that is the most
  double shortest_s = 0;  ///< the least
  /// Since the end of the context's last call; nothing if that was not noted.
  std::optional<double> longest_gap_s{};
  std::optional<double> shortest_gap_s{};
};

/// How much later the last rank came than the first one: as much as this, or up to the finishing
/// spread of the last call more or less. Nothing if nobody can say.
inline std::optional<double> skew_s(const call_times& t) {
  static constexpr double clocks_apart = 1e-5;  // in a second
  if (!t.longest_gap_s || !t.shortest_gap_s) return std::nullopt;
  return std::max(0.0, *t.longest_gap_s * (1 - clocks_apart) - *t.shortest_gap_s);
}

/// No rank can leave before all have come. Not so where a block may be empty.
constexpr bool waits_for_all(collective op) {
  switch (describe(op).what) {
    case promise::reduce_to_all:
    case promise::all_arrive:
      return true;
    case promise::reduce_to_blocks:
    case promise::blocks_to_all:
    case promise::blocks_to_blocks:
      return describe(op).lengths == block_lengths::equal;
    default:
      return false;
  }
}

/// So much of a call may pass between the first rank's leaving and the last one's (four fifths for
/// recursive doubling among 3 ranks, a gather and a broadcast), by which they seem to come apart to
/// the next one if something makes them wait in between. Four ranks on a core come apart by three
/// quarters of a call, now more, now less: most of them must wait until it is theirs.
inline constexpr double finishing_spread = 0.9;

/// How much of the time by which ranks seem to come apart is spent waiting inside the calls: all of
/// it where they do come apart, nothing where they only left the call before at different times.
/// Calls of one arm tell: the time inside grows by the one and not with the other. The slope of a
/// regression, nothing until it is known. A slope of more than 1 is no waiting: calls and the times
/// at which ranks leave them grow together, by the machine's load.
class waiting_share {
 public:
  /// Of a call of the arm in use.
  void learn(int arm, double longest_s, double skew_s) {
    if (arm != arm_) {
      arm_ = arm;
      calls_ = 0;
    }
    if (calls_ > 2 && longest_s > outlier * longest_) return;
    usual_skew_ += std::max(1 / ++seen_, 1 - kept) * (skew_s - usual_skew_);
    if (++calls_ == 1) {
      longest_ = longest_s;
      skew_ = skew_s;
      return;
    }
    const double weight = std::max(1 / calls_, 1 - kept);
    const double more_s = longest_s - longest_, later_s = skew_s - skew_;
    longest_ += weight * more_s;
    skew_ += weight * later_s;
    squares_ = kept * squares_ + later_s * later_s / (longest_ * longest_);
    products_ = kept * products_ + later_s * more_s / (longest_ * longest_);
  }

  double value() const {
    const double slope = products_ / (squares_ + doubt);
    return std::max(0.0, std::min(slope, 2 - slope));
  }

  /// What ranks waited in a call beyond the usual. Not all of what they waited: times of arms must
  /// stay comparable with those that were measured when less was known.
  double more_than_usual_s(double skew_s) const { return value() * (skew_s - usual_skew_); }

 private:
  static constexpr double kept = 0.98;    // of what was known, per call
  static constexpr double doubt = 0.1;    // squares, of calls, that speak for no slope
  static constexpr double outlier = 3.0;  // times the mean

  int arm_ = -1;
  double calls_ = 0, longest_ = 0, skew_ = 0;  // of the arm; means, in seconds
  double seen_ = 0, usual_skew_ = 0;           // of all arms
  double squares_ = 0, products_ = 0;          // of skew and time, in calls
};

/// From the last rank's coming to the last one's leaving. The most that a rank was inside is an
/// upper bound, the least a lower one. Where all wait for all, and ranks came so far apart that no
/// algorithm can have done it, what they waited is not counted; where an algorithm can have done
/// it, all of it counts but `waited_s`. In all other collectives a rank that is waited for cannot
/// be told from one that comes late to something that is over: there, the slowest rank counts.
/// `before_s`: what the context's call before took, if that is known; an arm that is tried may take
/// many times as long as the next one.
inline double duration_s(collective op, const call_times& t, double before_s = 0,
                         double waited_s = 0) {
  if (!waits_for_all(op)) return t.longest_s;
  const double late_s = skew_s(t).value_or(0);
  const bool certain = late_s > finishing_spread * std::max(t.longest_s, before_s);
  return std::max(t.shortest_s, t.longest_s - (certain ? late_s : waited_s));
}

}  // namespace railpass::select

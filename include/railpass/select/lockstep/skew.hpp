// SPDX-License-Identifier: BSL-1.0
//
// Who came late to a call, and what the call took without that. This needs no clock in common:
// each rank knows how long it was inside the call, and how long before that the context's last call
// had ended on it. If that ended everywhere at once, the largest and the smallest such gap are as
// far apart as the ranks came.
#pragma once

#include "railpass/select/lockstep/context.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace railpass::select {

/// What one timed call did to the rank that came last to its next call on the communicator, by a
/// clock that all ranks share or have agreed on. That rank holds up whatever meeting comes next.
struct shared_clock_times {
  double came_s = 0;   ///< when it had come
  double left_s = 0;   ///< when it left
  bool waits = false;  ///< it could not leave before the awaited ranks had come
  double ready_s = 0;  ///< when the last of these had come
  double error_s = 0;  ///< at most, of each rank's clock

  /// How much later it left than after a call that costs nothing, in which a rank only waits until
  /// those have come on which it depends.
  double cost_s() const {
    static constexpr double least_s = 1e-7;
    return std::max(left_s - (waits ? std::max(came_s, ready_s) : came_s), least_s);
  }
};

/// One timed call, over all ranks.
struct call_times {
  double longest_s = 0;   ///< inside the call, on the rank for which that is the most
  double shortest_s = 0;  ///< the least
  /// Since the end of the context's last call; nothing if that was not noted.
  std::optional<double> longest_gap_s{};
  std::optional<double> shortest_gap_s{};
  std::optional<shared_clock_times> on_shared_clock{};
};

/// How much later the last rank came than the first one: as much as this, or up to the finishing
/// spread of the last call more or less. Nothing if nobody can say.
inline std::optional<double> skew_s(const call_times& t) {
  static constexpr double clocks_apart = 1e-5;  // in a second
  if (!t.longest_gap_s || !t.shortest_gap_s) return std::nullopt;
  return std::max(0.0, *t.longest_gap_s * (1 - clocks_apart) - *t.shortest_gap_s);
}

/// So much of a call may pass between the first rank's leaving and the last one's (four fifths for
/// recursive doubling among 3 ranks, a gather and a broadcast), by which they seem to come apart to
/// the next one if something makes them wait in between.
inline constexpr double finishing_spread = 0.9;

/// Whether ranks share cores with each other or with anybody else: whether the busiest rank's core
/// was given away in more than a quarter of the watched calls (in one of 100 to 1000 on a core of
/// its own, in nearly all with three ranks on two cores). Which is seen, not asked: bindings,
/// containers and other jobs all count.
class core_sharing {
 public:
  /// Whether the timed call of that number is watched: asking takes two system calls.
  static bool watched(std::int64_t call) { return call < 32 || call % 8 == 0; }

  /// Of so many watched calls; in `away` of them a core was given away, on the rank where that is
  /// the most.
  void learn(int calls, int away) {
    if (calls <= 0) return;
    calls_ += calls;
    const double weight = std::max(calls / calls_, 1 - std::pow(kept, calls));
    share_ += weight * (double(away) / calls - share_);
  }

  bool is_usual() const { return share_ > most; }

  /// How many of the calls, in [0, 1]; nothing before the first ones.
  std::optional<double> share() const { return calls_ > 0 ? std::optional(share_) : std::nullopt; }

 private:
  static constexpr double kept = 0.95;  // of what was known, per call
  static constexpr double most = 0.25;
  double calls_ = 0, share_ = 0;
};

/// How late ranks usually come to the calls of a context. A single call does not tell, nor do
/// those of one arm.
class usual_lateness {
 public:
  /// Of any call; the answers are of use where all wait for all. `before_s`: what the context's
  /// call before took, 0 if nobody knows.
  void learn(const call_times& t, double before_s) {
    const auto late_s = skew_s(t);
    if (!late_s || t.longest_s <= 0) return;
    waiting_.add(std::min(1.0, *late_s / t.longest_s));
    if (before_s > 0) beyond_.add(*late_s > finishing_spread * before_s ? 1 : 0);
  }

  /// Whether most of the longest time inside is waiting for the last rank. Where ranks share cores
  /// less says nothing: those that have come let the others come only when they wait themselves, so
  /// ranks come apart by three quarters of a call, and the more an arm has to do the more so.
  bool is_most() const { return waiting_.calls >= few && waiting_.mean > most; }

  /// How far apart ranks may seem to come by having left the call before early, which took
  /// `before_s`. Not at all where they often come later than that explains: then they do so in the
  /// other calls, too, and times with their waiting and without it would not compare.
  double finishing_s(double before_s) const {
    return beyond_.calls >= few && beyond_.mean > often ? 0 : finishing_spread * before_s;
  }

 private:
  static constexpr double few = 4, kept = 0.95;  // calls; of what was known, per call
  static constexpr double most = 0.875;          // lateness of seven calls
  static constexpr double often = 0.1;           // of the calls

  struct recent_mean {
    double calls = 0, mean = 0;
    void add(double value) { mean += std::max(1 / ++calls, 1 - kept) * (value - mean); }
  };
  recent_mean waiting_;  // share of the longest time inside
  recent_mean beyond_;   // share of calls with more skew than the one before explains
};

/// From the last rank's coming to the last one's leaving. The most that a rank was inside is an
/// upper bound, the least a lower one. Where all wait for all, and how far apart they come is the
/// program's doing (they have cores of their own, or usually come late), how much later the last
/// one came is taken out, unless it is no more than `finishing_s`: by so much they may have left
/// the context's call before apart. In all other collectives a rank that is waited for cannot be
/// told from one that comes late to something that is over: there, the slowest rank counts.
inline double duration_s(waiting waits, const call_times& t, bool skew_is_lateness,
                         double finishing_s = 0) {
  if (!skew_is_lateness || waits != waiting::for_all) return t.longest_s;
  const double late_s = skew_s(t).value_or(0);
  if (late_s <= finishing_s) return t.longest_s;
  return std::max(t.shortest_s, t.longest_s - late_s);
}

}  // namespace railpass::select

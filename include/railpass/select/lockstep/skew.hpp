// SPDX-License-Identifier: BSL-1.0
//
// Arrival imbalance of the ranks in a call, and the time of the call without it. No common clock is
// needed: each rank knows the time inside the call, and the gap since the context's last call
// ended. If that call ended everywhere at once, the gaps of the ranks differ by the arrival
// imbalance.
#pragma once

#include "railpass/select/lockstep/context.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace railpass::select {

/// One timed call on the rank that came last to its next call on the communicator, by a clock that
/// all ranks share or have agreed on. That rank delays whatever the ranks do next.
struct shared_clock_times {
  double came_s = 0;   ///< arrival at the call
  double left_s = 0;   ///< departure from the call
  bool waits = false;  ///< the rank could not leave before the awaited ranks had arrived
  double ready_s = 0;  ///< arrival of the last awaited rank
  double error_s = 0;  ///< largest error of each rank's clock

  /// How much later the rank left than after a call without any cost, in which a rank only waits
  /// until the ranks on which it depends have arrived.
  double cost_s() const {
    static constexpr double least_s = 1e-7;
    return std::max(left_s - (waits ? std::max(came_s, ready_s) : came_s), least_s);
  }
};

/// One timed call, over all ranks.
struct call_times {
  double longest_s = 0;   ///< inside the call, on the slowest rank
  double shortest_s = 0;  ///< on the fastest rank
  /// Since the end of the context's last call; empty if unknown.
  std::optional<double> longest_gap_s{};
  std::optional<double> shortest_gap_s{};
  std::optional<shared_clock_times> on_shared_clock{};
};

/// How much later the last rank arrived than the first; exact up to the finishing spread of the
/// last call. Empty if unknown.
inline std::optional<double> skew_s(const call_times& t) {
  static constexpr double clocks_apart = 1e-5;  // seconds per second
  if (!t.longest_gap_s || !t.shortest_gap_s) return std::nullopt;
  return std::max(0.0, *t.longest_gap_s * (1 - clocks_apart) - *t.shortest_gap_s);
}

/// The share of a call that may pass between the departures of the first and the last rank (four
/// fifths for recursive doubling among 3 ranks, a gather and a broadcast). If the ranks wait for
/// something in between, they seem to arrive at the next call that far apart.
inline constexpr double finishing_spread = 0.9;

/// Whether ranks share cores with each other or with other processes. They do if the busiest rank
/// lost its core in more than a quarter of the watched calls. A rank with a core of its own loses
/// it in one of 100 to 1000 calls, three ranks on two cores in nearly all. The result is observed,
/// not asked for: bindings, containers and other jobs all count.
class core_sharing {
 public:
  /// Whether timed call number `call` is watched, which takes two system calls.
  static bool watched(std::int64_t call) { return call < 32 || call % 8 == 0; }

  /// Learns from `calls` watched calls.
  /// @param away calls in which the core was lost, on the rank with the most
  void learn(int calls, int away) {
    if (calls <= 0) return;
    calls_ += calls;
    const double weight = std::max(calls / calls_, 1 - std::pow(kept, calls));
    share_ += weight * (double(away) / calls - share_);
  }

  bool is_usual() const { return share_ > most; }

  /// The share of calls that lost a core, in [0, 1]; empty before the first calls.
  std::optional<double> share() const { return calls_ > 0 ? std::optional(share_) : std::nullopt; }

 private:
  static constexpr double kept = 0.95;  // weight of former calls, per call
  static constexpr double most = 0.25;
  double calls_ = 0, share_ = 0;
};

/// The usual arrival imbalance of a context's calls. A single call, or the calls of one arm, are
/// not enough to judge.
class usual_lateness {
 public:
  /// Learns from any call; the answers are useful if all ranks wait for all.
  /// @param before_s time of the context's call before, 0 if unknown
  void learn(const call_times& t, double before_s) {
    const auto late_s = skew_s(t);
    if (!late_s || t.longest_s <= 0) return;
    waiting_.add(std::min(1.0, *late_s / t.longest_s));
    if (before_s > 0) beyond_.add(*late_s > finishing_spread * before_s ? 1 : 0);
  }

  /// Whether waiting for the last rank is most of the longest time inside. Where ranks share cores,
  /// a smaller share proves nothing. Ranks that have arrived give their core to late ranks only
  /// when they wait themselves, so ranks arrive up to three quarters of a call apart. The distance
  /// grows with the work of the arm.
  bool is_most() const { return waiting_.calls >= few && waiting_.mean > most; }

  /// The apparent imbalance that an early departure from the call before (of `before_s`) may cause.
  /// The result is 0 if ranks often arrive later than that: they then do so in the other calls,
  /// too, and times with and without the waiting would not be comparable.
  double finishing_s(double before_s) const {
    return beyond_.calls >= few && beyond_.mean > often ? 0 : finishing_spread * before_s;
  }

 private:
  static constexpr double few = 4, kept = 0.95;  // calls; weight of former calls, per call
  static constexpr double most = 0.875;          // lateness of seven calls
  static constexpr double often = 0.1;           // of the calls

  struct recent_mean {
    double calls = 0, mean = 0;
    void add(double value) { mean += std::max(1 / ++calls, 1 - kept) * (value - mean); }
  };
  recent_mean waiting_;  // share of the longest time inside
  recent_mean beyond_;   // share of calls with more imbalance than the call before explains
};

/// The time from the last rank's arrival to the last rank's departure. The longest time inside is
/// an upper bound, the shortest a lower bound.
///
/// The imbalance is subtracted if all ranks wait for all and the imbalance is the program's (ranks
/// have cores of their own, or usually arrive late). Up to `finishing_s` it is not subtracted,
/// because ranks may have left the context's call before that far apart. In other collectives, a
/// rank that the others wait for looks like a rank that arrives after the end, so the slowest rank
/// counts.
inline double duration_s(waiting waits, const call_times& t, bool skew_is_lateness,
                         double finishing_s = 0) {
  if (!skew_is_lateness || waits != waiting::for_all) return t.longest_s;
  const double late_s = skew_s(t).value_or(0);
  if (late_s <= finishing_s) return t.longest_s;
  return std::max(t.shortest_s, t.longest_s - late_s);
}

}  // namespace railpass::select

// SPDX-License-Identifier: BSL-1.0
//
// The offset of a rank's clock from an agreed clock, within bounds that follow from messages: a
// message never arrives before it has left.
#pragma once

#include <algorithm>
#include <limits>

namespace railpass::select {

/// The agreed clock shows this rank's time plus an offset between two bounds. The bounds move apart
/// with time, because clocks drift.
class clock_offset {
 public:
  /// For a rank whose own clock is the agreed clock.
  clock_offset() = default;
  static clock_offset unknown() {
    clock_offset result;
    result.least_s_ = -std::numeric_limits<double>::infinity();
    result.most_s_ = std::numeric_limits<double>::infinity();
    result.slowest_ = -largest_drift;
    result.fastest_ = largest_drift;
    return result;
  }

  /// The most by which one clock gains on another, in seconds per second.
  static constexpr double largest_drift = 50e-6;

  // All times are by this rank's clock.

  /// Notes the bounds of the offset when this rank's clock showed `at_s`.
  void learn(double at_s, double least_s, double most_s) {
    if (is_known() && at_s < at_s_) {  // something newer is known
      learn(at_s_, least_s + slowest_ * (at_s_ - at_s), most_s + fastest_ * (at_s_ - at_s));
      return;
    }
    const double both_least_s = std::max(least_s, this->least_s(at_s)),
                 both_most_s = std::min(most_s, this->most_s(at_s));
    if (both_least_s > both_most_s) {  // a clock was set, or drifts faster
      *this = unknown();
      learn(at_s, least_s, most_s);
      return;
    }
    at_s_ = at_s;
    least_s_ = both_least_s;
    most_s_ = both_most_s;
    learn_drift();
  }

  /// The clocks have been compared, or are one.
  bool is_known() const { return most_s_ - least_s_ < std::numeric_limits<double>::infinity(); }
  double least_s(double at_s) const {
    return least_s_ + (at_s >= at_s_ ? slowest_ : fastest_) * (at_s - at_s_);
  }
  double most_s(double at_s) const {
    return most_s_ + (at_s >= at_s_ ? fastest_ : slowest_) * (at_s - at_s_);
  }
  /// The middle of the bounds; the true offset is at most error_s() away.
  double offset_s(double at_s) const { return least_s(at_s) + error_s(at_s); }
  double error_s(double at_s) const { return (most_s(at_s) - least_s(at_s)) / 2; }

 private:
  // The drift changes by this much, with temperature and corrections of clocks.
  static constexpr double wander = 5e-6;

  /// From the first bounds to the latest ones.
  void learn_drift() {
    if (!is_known()) return;
    if (!has_first_) {
      has_first_ = true;
      first_at_s_ = at_s_;
      first_least_s_ = least_s_;
      first_most_s_ = most_s_;
    }
    const double passed_s = at_s_ - first_at_s_;
    if (passed_s <= 0) return;
    slowest_ = std::max(-largest_drift, (least_s_ - first_most_s_) / passed_s - wander);
    fastest_ = std::min(largest_drift, (most_s_ - first_least_s_) / passed_s + wander);
  }

  double at_s_ = 0, least_s_ = 0, most_s_ = 0;
  double slowest_ = 0, fastest_ = 0;  // how the offset changes, in seconds per second
  bool has_first_ = false;
  double first_at_s_ = 0, first_least_s_ = 0, first_most_s_ = 0;
};

/// The answer of a rank that knows the agreed clock.
struct clock_answer {
  double came_s = 0;               ///< arrival of the question, by the clock of the answering rank
  double left_s = 0;               ///< not after the answer left, by the same clock
  double least_s = 0, most_s = 0;  ///< bounds of that clock's offset at left_s
};

/// Learns from an answer: the question left at `asked_s`, the answer arrived at `received_s`, both
/// by this rank's clock.
inline void learn_from(clock_offset& own, const clock_answer& a, double asked_s,
                       double received_s) {
  constexpr double drift = clock_offset::largest_drift;
  own.learn(received_s, a.left_s - received_s + a.least_s,
            a.came_s - asked_s + a.most_s + drift * (a.left_s - a.came_s) +
                drift * (received_s - asked_s));
}

}  // namespace railpass::select

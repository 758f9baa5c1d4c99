// SPDX-License-Identifier: BSL-1.0
//
// Clocks and start times for measurements by rounds, which begin on all ranks at one instant. No
// MPI calls: the caller exchanges the messages that synchronise the clocks.
//
// Hunold, Carpen-Amarie: Reproducible MPI benchmarking is still not as easy as you think, IEEE TPDS
// 27(12), 2016, doi:10.1109/TPDS.2016.2539167 (linear models of drift, learnt pair by pair; rounds
// that begin late do not count).
#pragma once

#include "railpass/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace railpass::internal::measure {

/// A message to the reference and back: this rank's clock at both ends, the reference's global time
/// in between.
struct ping {
  double sent_s = 0;
  double global_s = 0;
  double received_s = 0;
  double round_trip_s() const { return received_s - sent_s; }
};

/// global = local + offset_s + drift * (local - at_s).
struct clock_model {
  double at_s = 0;
  double offset_s = 0;
  double drift = 0;
  double global_s(double local_s) const { return local_s + offset_s + drift * (local_s - at_s); }
  double local_s(double global_s) const {
    return at_s + (global_s - offset_s - at_s) / (1 + drift);
  }
};

/// The least-squares line through the quickest ping of each group, whose answer was half-way most
/// precisely. With one group, drift is 0.
inline clock_model fit_clock(std::span<const std::vector<ping>> groups) {
  std::vector<std::pair<double, double>> points;  // local time, offset
  double mean_at_s = 0, mean_offset_s = 0;
  for (const std::vector<ping>& group : groups) {
    if (group.empty()) throw error("fit_clock: a group has no pings");
    const ping& best = *std::ranges::min_element(group, {}, &ping::round_trip_s);
    const double at_s = (best.sent_s + best.received_s) / 2;
    points.emplace_back(at_s, best.global_s - at_s);
  }
  if (points.empty()) throw error("fit_clock: expected at least one group of pings");
  // Means of differences: a clock may be at 1e9 seconds.
  const auto [first_at_s, first_offset_s] = points.front();
  for (const auto& [at_s, offset_s] : points) {
    mean_at_s += (at_s - first_at_s) / double(points.size());
    mean_offset_s += (offset_s - first_offset_s) / double(points.size());
  }
  double both = 0, square = 0;
  for (const auto& [at_s, offset_s] : points) {
    const double t = at_s - first_at_s - mean_at_s;
    both += t * (offset_s - first_offset_s - mean_offset_s);
    square += t * t;
  }
  return {.at_s = first_at_s + mean_at_s,
          .offset_s = first_offset_s + mean_offset_s,
          .drift = square > 0 ? both / square : 0};
}

/// The rank from which a rank learns the clock, and the round: ranks 2^k .. 2^(k+1) - 1 learn in
/// round k from ranks that already know global time. Rank 0's clock is global time.
struct clock_teacher {
  int round = 0;
  int rank = 0;
};
inline clock_teacher teacher_of(int rank) {
  clock_teacher t;
  while (rank >> (t.round + 1)) ++t.round;
  t.rank = rank - (1 << t.round);
  return t;
}

/// Seconds between a round's announcement and its start: longer after a late rank, slightly shorter
/// after other rounds.
class announcement {
 public:
  static constexpr double least_s = 20e-6, most_s = 0.1;
  explicit announcement(double first_s) : ahead_s_(std::clamp(first_s, least_s, most_s)) {}
  double ahead_s() const { return ahead_s_; }
  void began(bool late) { ahead_s_ = std::clamp(ahead_s_ * (late ? 1.5 : 0.995), least_s, most_s); }

 private:
  double ahead_s_;
};

}  // namespace railpass::internal::measure

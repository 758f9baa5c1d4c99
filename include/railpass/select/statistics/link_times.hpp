// SPDX-License-Identifier: BSL-1.0
//
// Which hosts exchange messages at the end of a run to measure their links, and the times that a
// host keeps. host_statistics.hpp compares the hosts.
//
// An exchange is as slow as the slower link of its two hosts. So a host keeps the quickest of its
// exchanges with different hosts, which a slow link of another host does not reach.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace railpass::select {

namespace detail {
/// Hosts that take turns around a circle; the last of an even number of hosts is outside.
constexpr int in_link_circle(int num_hosts) { return (num_hosts - 1) | 1; }
}  // namespace detail

/// In each round a host meets a host that it has not met before; with an odd number of hosts, one
/// host of each round meets no host.
constexpr int link_rounds(int num_hosts) {
  return std::min(detail::in_link_circle(num_hosts), 3 + num_hosts % 2);
}

/// The host that `host` meets in a round, by the circle method; `host` itself: no host.
constexpr int link_partner(int host, int round, int num_hosts) {
  const int circle = detail::in_link_circle(num_hosts);
  if (host == circle) return int(std::int64_t(round) * (circle + 1) / 2 % circle);
  const int other = (round - host + circle) % circle;
  return other == host && circle < num_hosts ? circle : other;
}

/// Seconds of exchanges of one host. Each trial has all rounds.
class link_times {
 public:
  static constexpr std::size_t num_trials = 12;
  static constexpr int least_partners = 2;  ///< one partner may have the slow link itself

  link_times() { quickest_.fill(std::numeric_limits<double>::infinity()); }
  void add(std::size_t trial, double seconds) {
    ++partners_[trial];
    quickest_[trial] = std::min(quickest_[trial], seconds);
  }
  /// Not a number: unknown.
  double quickest_s(std::size_t trial) const {
    return partners_[trial] < least_partners ? std::numeric_limits<double>::quiet_NaN()
                                             : quickest_[trial];
  }

 private:
  std::array<double, num_trials> quickest_;
  std::array<int, num_trials> partners_{};
};

}  // namespace railpass::select

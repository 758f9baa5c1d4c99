// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <simgrid/forward.h>
#include <string>
#include <vector>

/// Links of the simulated machine that get slower and recover, while calls are made.
class slow_links {
 public:
  /// "HOST,BANDWIDTH": by which bandwidth is multiplied on the first and last links of all routes
  /// from and to a host, or on all links if HOST is "all". Throws railpass::error if it says
  /// something else. (SimGrid 3.32 ends in a deadlock if latencies change.)
  explicit slow_links(const std::string& what);

  /// On one rank.
  void slow_down() const { set(bandwidth_factor_); }
  void recover() const { set(1); }

 private:
  struct link {
    sg_link_t handle;
    double bandwidth;
  };

  void add(sg_link_t handle);
  void set(double bandwidth_factor) const;

  std::vector<link> links_;
  double bandwidth_factor_ = 1;
};

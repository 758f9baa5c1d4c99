// SPDX-License-Identifier: BSL-1.0
//
// Arms as points of a grid: algorithm, segment size, and what else tells two arms of one algorithm
// and segment size apart. Not every point is an arm.
#pragma once

#include "railpass/select/policy.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <vector>

namespace railpass::select {

class attribute_grid {
 public:
  static constexpr std::size_t num_attributes = 3;
  using point = std::array<int, num_attributes>;

  explicit attribute_grid(std::span<const arm_prior> arms) {
    std::vector<int> families;
    std::vector<double> segments;
    for (const arm_prior& a : arms) {
      if (std::find(families.begin(), families.end(), a.family) == families.end())
        families.push_back(a.family);
      segments.push_back(a.log2_segment);
    }
    std::sort(segments.begin(), segments.end());
    segments.erase(std::unique(segments.begin(), segments.end()), segments.end());
    for (std::size_t i = 0; i < arms.size(); ++i) {
      const auto family = std::find(families.begin(), families.end(), arms[i].family);
      const auto segment = std::find(segments.begin(), segments.end(), arms[i].log2_segment);
      point p{int(family - families.begin()), int(segment - segments.begin()), 0};
      while (std::find(points_.begin(), points_.end(), p) != points_.end()) ++p[2];
      points_.push_back(p);
      for (std::size_t x = 0; x < num_attributes; ++x) levels_[x] = std::max(levels_[x], p[x] + 1);
    }
  }

  /// How many values an attribute has.
  int levels(std::size_t attribute) const { return levels_[attribute]; }
  const point& at(std::size_t arm) const { return points_[arm]; }

  /// The allowed arm whose point differs least from `wanted`; with `fixed`, one that has that
  /// attribute's value of `wanted`. -1 if there is none.
  template <class F>
  int nearest(const point& wanted, int fixed, F allowed) const {
    int best = -1, least = 0;
    for (std::size_t a = 0; a < points_.size(); ++a) {
      if (!allowed(a)) continue;
      int distance = 0;
      for (std::size_t x = 0; x < num_attributes; ++x)
        distance += std::abs(points_[a][x] - wanted[x]);
      if (fixed >= 0 && points_[a][std::size_t(fixed)] != wanted[std::size_t(fixed)]) continue;
      if (best >= 0 && distance >= least) continue;
      best = int(a);
      least = distance;
    }
    return best;
  }

 private:
  std::vector<point> points_;
  point levels_{};
};

}  // namespace railpass::select

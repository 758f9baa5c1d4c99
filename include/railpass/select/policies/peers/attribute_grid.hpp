// SPDX-License-Identifier: BSL-1.0
//
// Arms as points of a grid of attributes: the attributes of a function set's versions, or algorithm
// and segment size of a collective's arms. If several arms have equal attributes, another property
// distinguishes them. Not every point is an arm.
#pragma once

#include "railpass/select/policy/policy.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <vector>

namespace railpass::select {

/// The values of an arm's attributes; equally many for each arm of a context.
inline std::vector<double> attributes_of(const arm_prior& a) {
  return a.attributes.empty() ? std::vector{double(a.family), a.log2_segment} : a.attributes;
}

class attribute_grid {
 public:
  /// For each attribute, the rank of its value among all its values, in ascending order.
  using point = std::vector<int>;

  explicit attribute_grid(std::span<const arm_prior> arms) {
    std::vector<std::vector<double>> values;  // by attribute
    for (const arm_prior& a : arms) {
      const std::vector<double> own = attributes_of(a);
      values.resize(std::max(values.size(), own.size()));
      for (std::size_t x = 0; x < own.size(); ++x) values[x].push_back(own[x]);
    }
    for (std::vector<double>& all : values) {
      std::sort(all.begin(), all.end());
      all.erase(std::unique(all.begin(), all.end()), all.end());
    }
    levels_.assign(values.size() + 1, 1);
    for (const arm_prior& a : arms) {
      const std::vector<double> own = attributes_of(a);
      point p(levels_.size(), 0);
      for (std::size_t x = 0; x < own.size(); ++x)
        p[x] =
            int(std::lower_bound(values[x].begin(), values[x].end(), own[x]) - values[x].begin());
      while (std::find(points_.begin(), points_.end(), p) != points_.end()) ++p.back();
      for (std::size_t x = 0; x < p.size(); ++x) levels_[x] = std::max(levels_[x], p[x] + 1);
      points_.push_back(std::move(p));
    }
  }

  std::size_t num_attributes() const { return levels_.size(); }
  /// The number of values of an attribute.
  int levels(std::size_t attribute) const { return levels_[attribute]; }
  const point& at(std::size_t arm) const { return points_[arm]; }

  /// The allowed arm whose point differs least from `wanted`; -1 if there is none.
  /// @param fixed attribute that must have the value in `wanted`; negative: none
  template <class F>
  int nearest(const point& wanted, int fixed, F allowed) const {
    int best = -1, least = 0;
    for (std::size_t a = 0; a < points_.size(); ++a) {
      if (!allowed(a)) continue;
      int distance = 0;
      for (std::size_t x = 0; x < num_attributes(); ++x)
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
  point levels_;
};

}  // namespace railpass::select

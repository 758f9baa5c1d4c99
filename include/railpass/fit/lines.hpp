// SPDX-License-Identifier: BSL-1.0
//
// Straight lines through times against sizes, and where one stops fitting and the next begins
// (eager and rendezvous protocols, caches): found by dynamic programming over the sizes with a
// price per piece. Lines are fitted to relative errors with Huber's weights
// (doi:10.1214/aoms/1177703732), so that short messages count as much as long ones and outliers
// hardly count.
#pragma once

#include "railpass/base/statistics.hpp"

#include <Eigen/Dense>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace railpass {

/// A straight line through times: alpha_s + bytes * s_per_byte, neither negative.
struct line_fit {
  double alpha_s = 0;
  double s_per_byte = 0;
  double at(double bytes) const { return alpha_s + bytes * s_per_byte; }
};

namespace detail {

struct timed_size {
  double bytes = 0;
  double seconds = 0;
};

// Huber's weight of a residual in units of its scale.
inline double huber_weight(double x) { return std::abs(x) <= 1.5 ? 1 : 1.5 / std::abs(x); }
inline double huber_cost(double x) {
  const double a = std::abs(x);
  return a <= 1.5 ? 0.5 * a * a : 1.5 * (a - 0.75);
}

// Relative errors below this are noise that no piece need explain.
inline constexpr double line_noise = 0.04;

// Weighted least squares of the relative errors, neither coefficient negative. With `through`, the
// line starts there and only its slope is free.
inline line_fit weighted_line(std::span<const timed_size> points,
                              const std::vector<double>& weights, const timed_size* through) {
  if (through) {
    double above = 0, below = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double x = (points[i].bytes - through->bytes) / points[i].seconds;
      above += weights[i] * x * (1 - through->seconds / points[i].seconds);
      below += weights[i] * x * x;
    }
    // Not so steep that the line would cross zero time before zero bytes.
    const double steepest = through->bytes > 0 ? through->seconds / through->bytes
                                               : std::numeric_limits<double>::infinity();
    const double slope = std::clamp(below > 0 ? above / below : 0.0, 0.0, steepest);
    return {through->seconds - slope * through->bytes, slope};
  }
  Eigen::Matrix2d normal = Eigen::Matrix2d::Zero();
  Eigen::Vector2d right = Eigen::Vector2d::Zero();
  double scale = 1;  // of the sizes, so that the two columns are comparable
  for (const timed_size& p : points) scale = std::max(scale, p.bytes);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Eigen::Vector2d row(1 / points[i].seconds, points[i].bytes / scale / points[i].seconds);
    normal += weights[i] * row * row.transpose();
    right += weights[i] * row;
  }
  const auto alone = [&](int k) { return normal(k, k) > 0 ? right(k) / normal(k, k) : 0.0; };
  Eigen::Vector2d x(alone(0), 0);
  if (normal.determinant() > 1e-12 * normal(0, 0) * normal(1, 1)) {
    x = normal.ldlt().solve(right);
    if (x(0) < 0) x = Eigen::Vector2d(0, alone(1));
    if (x(1) < 0) x = Eigen::Vector2d(alone(0), 0);
  }
  return {x(0), x(1) / scale};
}

inline line_fit robust_line(std::span<const timed_size> points,
                            const timed_size* through = nullptr) {
  std::vector<double> weights(points.size(), 1), errors(points.size());
  line_fit line;
  for (int iteration = 0; iteration < 20; ++iteration) {
    line = weighted_line(points, weights, through);
    for (std::size_t i = 0; i < points.size(); ++i)
      errors[i] = std::abs(line.at(points[i].bytes) / points[i].seconds - 1);
    const double scale = std::max(line_noise, 1.4826 * median(errors));
    for (std::size_t i = 0; i < points.size(); ++i) weights[i] = huber_weight(errors[i] / scale);
  }
  return line;
}

inline double line_cost(std::span<const timed_size> points, const line_fit& line) {
  double cost = 0;
  for (const timed_size& p : points)
    cost += huber_cost((line.at(p.bytes) / p.seconds - 1) / line_noise);
  return cost;
}

inline std::vector<timed_size> between(const std::vector<timed_size>& sorted, double from_bytes,
                                       double below_bytes) {
  std::vector<timed_size> some;
  for (const timed_size& p : sorted)
    if (p.bytes >= from_bytes && p.bytes < below_bytes) some.push_back(p);
  return some;
}

// Where pieces begin: the cut with the least cost of both curves, at least three sizes in each
// piece. Both sorted by size; `streams` may be empty.
inline std::vector<double> find_pieces(const std::vector<timed_size>& one_way,
                                       const std::vector<timed_size>& streams) {
  constexpr std::size_t least_sizes = 3;
  constexpr double price = 6;  // of a piece, about ln(cost) of its three numbers and its position
  std::vector<double> sizes;
  for (const timed_size& p : one_way)
    if (sizes.empty() || p.bytes > sizes.back()) sizes.push_back(p.bytes);
  const std::size_t n = sizes.size();
  const double beyond = std::numeric_limits<double>::infinity();
  std::vector<double> best(n + 1, beyond);
  std::vector<std::size_t> begin(n + 1, 0);
  best[0] = 0;
  for (std::size_t end = 1; end <= n; ++end)
    for (std::size_t first = 0; first < end; ++first) {
      if (best[first] == beyond || (end - first < least_sizes && (first > 0 || end < n))) continue;
      const double from = first == 0 ? 0 : sizes[first], below = end == n ? beyond : sizes[end];
      double cost = best[first] + price;
      for (const auto* curve : {&one_way, &streams}) {
        const auto points = between(*curve, from, below);
        if (!points.empty()) cost += line_cost(points, robust_line(points));
      }
      if (cost < best[end]) {
        best[end] = cost;
        begin[end] = first;
      }
    }
  // Limits of protocols are mostly sizes that were measured: the next byte begins the new piece.
  std::vector<double> starts;
  for (std::size_t end = n; end > 0; end = begin[end])
    starts.push_back(begin[end] == 0 ? 0 : sizes[begin[end] - 1] + 1);
  std::reverse(starts.begin(), starts.end());
  return starts;
}

struct curve_piece {
  double from_bytes = 0;
  line_fit line;
};

inline const line_fit& line_for(const std::vector<curve_piece>& curve, double bytes) {
  const auto after =
      std::upper_bound(curve.begin(), curve.end(), bytes,
                       [](double b, const curve_piece& piece) { return b < piece.from_bytes; });
  return after == curve.begin() ? curve.front().line : (after - 1)->line;
}

// One line per piece, and a level one between where the next would begin below the end of the one
// before: no step down anywhere.
inline std::vector<curve_piece> monotone_curve(const std::vector<timed_size>& points,
                                               const std::vector<double>& starts) {
  std::vector<curve_piece> curve;
  for (std::size_t k = 0; k < starts.size(); ++k) {
    const double below =
        k + 1 < starts.size() ? starts[k + 1] : std::numeric_limits<double>::infinity();
    const auto mine = between(points, starts[k], below);
    if (mine.empty()) continue;
    line_fit line = robust_line(mine);
    if (curve.empty()) {
      curve.push_back({0, line});
      continue;
    }
    const timed_size before{starts[k] - 1, curve.back().line.at(starts[k] - 1)};
    if (line.at(starts[k]) < before.seconds) {
      const double meeting =
          line.s_per_byte > 0 ? (before.seconds - line.alpha_s) / line.s_per_byte : below;
      if (meeting <= mine.front().bytes) {
        curve.push_back({starts[k], {before.seconds, 0}});
        curve.push_back({meeting, line});
        continue;
      }
      line = robust_line(mine, &before);  // the measurements themselves step down
    }
    curve.push_back({starts[k], line});
  }
  return curve;
}

inline void sort_by_size(std::vector<timed_size>& points) {
  std::stable_sort(points.begin(), points.end(),
                   [](const timed_size& a, const timed_size& b) { return a.bytes < b.bytes; });
}

inline constexpr double least_residual_spread = 0.02;

template <class Model>
double residual_spread(const std::vector<timed_size>& points, const Model& model) {
  std::vector<double> logs;
  for (const timed_size& p : points)
    if (const double predicted = model(p.bytes); predicted > 0)
      logs.push_back(std::log(p.seconds / predicted));
  return logs.empty() ? 1 : std::max(least_residual_spread, robust_spread(logs));
}

}  // namespace detail

}  // namespace railpass

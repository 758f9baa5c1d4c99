// SPDX-License-Identifier: BSL-1.0
//
// Splits a message over rails so that all rails finish at the same time, given how long each rail
// is still busy. Fixed weights are here for comparison; strategies/ uses both.
#pragma once

#include "railpass/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace railpass::transport {

/// The time of a rail as a function of bytes: piecewise linear and nondecreasing, extrapolated with
/// the last slope.
class transfer_time {
 public:
  struct point {
    double bytes = 0;
    double seconds = 0;
  };

  transfer_time() : transfer_time(0, 1e9) {}

  /// latency_s plus bytes at a constant rate > 0.
  transfer_time(double latency_s, double bytes_per_s)
      : transfer_time({{0, latency_s}, {bytes_per_s, latency_s + 1}}) {}

  /// At least two points with increasing bytes. Times that decrease with the size are replaced by
  /// their isotonic regression.
  /// @throws error if a point is invalid
  explicit transfer_time(std::vector<point> points) : points_(std::move(points)) {
    if (points_.size() < 2) throw error("a transfer time needs points at two sizes or more");
    for (std::size_t i = 0; i < points_.size(); ++i)
      if (!(points_[i].seconds >= 0) || !std::isfinite(points_[i].seconds) ||
          !std::isfinite(points_[i].bytes) || points_[i].bytes < 0 ||
          (i > 0 && points_[i].bytes <= points_[i - 1].bytes))
        throw error("point " + std::to_string(i) +
                    " of a transfer time: expected growing sizes and finite times");
    make_monotone();
  }

  double time_s(double bytes) const {
    const point *a = points_.data(), *b = a + 1;
    if (points_.size() > 2) {
      b = std::upper_bound(a + 1, a + points_.size() - 1, bytes,
                           [](double x, const point& p) { return x < p.bytes; });
      a = b - 1;
    }
    return a->seconds + (bytes - a->bytes) * slope(*a, *b);
  }

  /// The most bytes that take at most `seconds`; 0 if the first point already takes longer.
  double bytes_within(double seconds) const {
    const point *a = points_.data(), *b = a + 1;
    if (seconds <= a->seconds) return 0;
    if (points_.size() > 2) {
      b = std::upper_bound(a + 1, a + points_.size() - 1, seconds,
                           [](double x, const point& p) { return x < p.seconds; });
      a = b - 1;
    }
    return a->bytes + (seconds - a->seconds) / slope(*a, *b);
  }

  double latency_s() const { return time_s(0); }
  /// For very large messages.
  double bytes_per_s() const {
    return 1 / slope(points_[points_.size() - 2], points_[points_.size() - 1]);
  }

  /// The same rail at another rate: everything except the latency is scaled.
  transfer_time at_rate(double bytes_per_second) const {
    transfer_time result = *this;
    const double factor = bytes_per_s() / bytes_per_second, base_s = latency_s();
    for (point& p : result.points_) p.seconds = base_s + (p.seconds - base_s) * factor;
    return result;
  }

 private:
  static double slope(const point& a, const point& b) {
    return (b.seconds - a.seconds) / (b.bytes - a.bytes);
  }

  // Pools decreasing neighbours, then gives every piece a positive slope, so that it has an
  // inverse.
  void make_monotone() {
    struct pool {
      double seconds;
      std::size_t count;
    };
    std::vector<pool> pools;
    for (const point& p : points_) {
      pools.push_back({p.seconds, 1});
      while (pools.size() > 1 && pools[pools.size() - 2].seconds >= pools.back().seconds) {
        const pool last = pools.back();
        pools.pop_back();
        pool& before = pools.back();
        const auto n = double(before.count), m = double(last.count);
        before.seconds = (before.seconds * n + last.seconds * m) / (n + m);
        before.count += last.count;
      }
    }
    std::size_t i = 0;
    for (const pool& p : pools)
      for (std::size_t k = 0; k < p.count; ++k) points_[i++].seconds = p.seconds;
    constexpr double least_s_per_byte = 1e-14;
    for (i = 1; i < points_.size(); ++i)
      points_[i].seconds = std::max(
          points_[i].seconds,
          points_[i - 1].seconds + least_s_per_byte * (points_[i].bytes - points_[i - 1].bytes));
  }

  std::vector<point> points_;
};

/// A rail's input to a split.
struct rail_outlook {
  const transfer_time* time = nullptr;
  double busy_s = 0;   ///< until the rail has carried everything it was given
  bool spare = false;  ///< gets no part of large messages, because it slows down faster rails
};

/// When the rail would finish `bytes` more bytes.
inline double finish_s(const rail_outlook& r, double bytes) {
  return r.busy_s + r.time->time_s(bytes);
}

/// The rail that would finish `bytes` first; the first of equals.
inline std::size_t soonest(std::span<const rail_outlook> rails, double bytes) {
  std::size_t best = 0;
  double best_s = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < rails.size(); ++i) {
    const double at_s = finish_s(rails[i], bytes);
    if (at_s < best_s) best = i, best_s = at_s;
  }
  return best;
}

namespace detail {

// Rounds shares down to bytes; the rest goes to the rail with the largest share.
inline void to_bytes(std::span<const double> exact, std::int64_t bytes,
                     std::span<std::int64_t> shares) {
  std::int64_t left = bytes;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    shares[i] = std::clamp(std::int64_t(exact[i]), std::int64_t{0}, left);
    left -= shares[i];
  }
  shares[std::size_t(std::max_element(exact.begin(), exact.end()) - exact.begin())] += left;
}

}  // namespace detail

inline constexpr std::size_t most_rails = 16;

/// Splits `bytes` so that all rails that carry anything finish at the same, earliest possible time.
/// Bisection with secant steps finds the time at which the rails together would have carried
/// `bytes`. A rail that is busy until then gets nothing; a busy fast rail gets a share if waiting
/// for it is faster. Each share has at least `least_bytes`, unless the message is smaller. Spare
/// rails get nothing, unless all are spare. For two rails the result is that of NewMadeleine's
/// dichotomy (strategies/dichotomy.hpp).
/// @param shares receives the shares, which add up to `bytes`
/// @return seconds from now until the last rail finishes
inline double split(std::span<const rail_outlook> rails, std::int64_t bytes,
                    std::int64_t least_bytes, std::span<std::int64_t> shares) {
  const std::size_t n = rails.size();
  bool used[most_rails] = {};
  double exact[most_rails] = {};
  const bool all_spare = std::ranges::all_of(rails, &rail_outlook::spare);
  for (std::size_t i = 0; i < n; ++i) used[i] = all_spare || !rails[i].spare;
  const auto total = double(bytes);
  for (;;) {
    const auto carried = [&](double until_s) {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) {
        exact[i] = used[i] ? rails[i].time->bytes_within(until_s - rails[i].busy_s) : 0;
        sum += exact[i];
      }
      return sum;
    };
    double low = std::numeric_limits<double>::infinity(), high = low;
    for (std::size_t i = 0; i < n; ++i)
      if (used[i]) {
        low = std::min(low, rails[i].busy_s + rails[i].time->latency_s());
        high = std::min(high, finish_s(rails[i], total));
      }
    // Bytes too few at `low`, and too many at `high`.
    double lacking = total - carried(low), beyond = carried(high) - total;
    double width_before_s = std::numeric_limits<double>::infinity();
    for (int step = 0; step < 60 && beyond > 0.5; ++step) {
      const double width_s = high - low;
      // A secant step, or bisection where the last one did not halve the interval.
      const double part = width_s <= width_before_s / 2 ? lacking / (lacking + beyond) : 0.5;
      width_before_s = width_s;
      const double until_s = low + width_s * part;
      const double over = carried(until_s) - total;
      if (std::abs(over) <= 0.5) break;
      if (over < 0)
        low = until_s, lacking = -over;
      else
        high = until_s, beyond = over;
    }
    // Drops rails whose shares are not worth a message, the slowest first.
    std::size_t dropped = n, carriers = 0;
    double dropped_s = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (exact[i] <= 0) continue;
      ++carriers;
      const double alone_s = finish_s(rails[i], total);
      if (exact[i] < double(least_bytes) && alone_s >= dropped_s) dropped = i, dropped_s = alone_s;
    }
    if (dropped == n || carriers < 2) break;
    used[dropped] = false;
  }
  detail::to_bytes({exact, n}, bytes, shares.first(n));
  double end_s = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (shares[i] > 0) end_s = std::max(end_s, finish_s(rails[i], double(shares[i])));
  return end_s;
}

/// Shares in proportion to `weights`, regardless of how busy the rails are.
inline void split_by_weight(std::span<const double> weights, std::int64_t bytes,
                            std::span<std::int64_t> shares) {
  double exact[most_rails] = {};
  double sum = 0;
  for (const double w : weights) sum += w;
  for (std::size_t i = 0; i < weights.size(); ++i) exact[i] = double(bytes) * weights[i] / sum;
  detail::to_bytes({exact, weights.size()}, bytes, shares.first(weights.size()));
}

}  // namespace railpass::transport

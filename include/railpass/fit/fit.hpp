// SPDX-License-Identifier: BSL-1.0
//
// From measurements to models. The one header of railpass that includes Eigen.
//
// Links: one-way times against size are cut in pieces where a straight line stops fitting (eager
// and rendezvous protocols, caches), by dynamic programming over the sizes with a price per piece.
// Lines are fitted to relative errors with Huber's weights (doi:10.1214/aoms/1177703732), so that
// short messages count as much as long ones and outliers hardly count.
//
// Collectives: from the times of algorithms whose closed forms are known, the scales of the link
// parameters and one factor per algorithm are estimated together (Levenberg-Marquardt,
// doi:10.1137/0111030, on the logarithms, Huber's weights again, weak priors that keep what the
// data does not tell where it was). What they leave is expected of similar arms, too
// (railpass/select/misfit.hpp). Times of few runs count less, and hardly if they seem to be slow
// ones.
#pragma once

#include "collectives/registry.hpp"
#include "models/samples.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/select/prior.hpp"

#include <Eigen/Dense>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <tuple>
#include <utility>
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
  constexpr double price = 6;  // of a piece, about ln(cost) of its three numbers and its place
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

// Of processors' work for the messages of a piece. With the size it grows only where a line through
// all messages of the same protocol leaves half the error: where ranks share cores, single values
// say little.
inline line_fit overhead_line(std::span<const timed_size> of_piece,
                              std::vector<timed_size> of_protocol) {
  const auto level = [](std::span<const timed_size> points) {
    std::vector<double> all_s;
    for (const timed_size& p : points) all_s.push_back(p.seconds);
    return line_fit{all_s.empty() ? 0 : median(all_s), 0};
  };
  const auto error = [&](const line_fit& line) {
    std::vector<double> errors;
    for (const timed_size& p : of_protocol)
      errors.push_back(std::abs(line.at(p.bytes) / p.seconds - 1));
    return median(errors);
  };
  constexpr std::size_t least_values = 4;
  // Some work is too little to be seen.
  std::erase_if(of_protocol, [](const timed_size& p) { return p.seconds <= 0; });
  if (of_protocol.size() >= least_values)
    if (const line_fit line = robust_line(of_protocol);
        error(line) < 0.5 * error(level(of_protocol)))
      return line;
  return level(of_piece);
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

/// Hockney's two numbers and how far measurements lie off: the standard deviation of
/// ln(measured / model).
struct hockney_fit {
  line_fit line;
  double residual_spread = 0;
};

/// Throws error without a sample of the link class.
inline hockney_fit fit_hockney(std::span<const link_sample> samples, link_class link) {
  std::vector<detail::timed_size> points;
  for (const link_sample& s : samples)
    if (s.link == link) points.push_back({double(s.bytes), s.one_way_s});
  if (points.empty()) throw error("fit: expected at least one one-way time of the link class");
  const line_fit line = detail::robust_line(points);
  return {line, detail::residual_spread(points, [&](double n) { return line.at(n); })};
}

namespace detail {

// From sample to sample, those that would step down replaced by their mean (pool adjacent
// violators). Where the protocol changes, at the eager limit, the lines below and above go on to
// it. Empty without samples.
inline time_curve fit_curve(const std::vector<timed_size>& points, double eager_limit_bytes) {
  std::map<double, std::vector<double>> samples;
  for (const timed_size& p : points) samples[p.bytes].push_back(p.seconds);
  struct pool {
    double log_sum = 0;
    int size = 0;
    double seconds() const { return std::exp(log_sum / size); }
  };
  std::vector<pool> pools;
  for (const auto& [bytes, seconds] : samples) {
    pools.push_back({std::log(median(seconds)), 1});
    while (pools.size() > 1 && pools.back().seconds() < pools[pools.size() - 2].seconds()) {
      const pool last = pools.back();
      pools.pop_back();
      pools.back().log_sum += last.log_sum;
      pools.back().size += last.size;
    }
  }
  std::vector<timed_size> curve;
  for (const pool& p : pools)
    for (int i = 0; i < p.size; ++i)
      curve.push_back(
          {std::next(samples.begin(), std::ptrdiff_t(curve.size()))->first, p.seconds()});
  const auto slope_to = [&](std::size_t next) {
    return (curve[next].seconds - curve[next - 1].seconds) /
           (curve[next].bytes - curve[next - 1].bytes);
  };
  const auto line_by = [&](const timed_size& p, double slope) {
    return line_fit{p.seconds - slope * p.bytes, slope};
  };
  time_curve result;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    // Beyond the last sample a byte costs what it did on the average up to there.
    line_fit line =
        line_by(curve[i], i + 1 < curve.size() ? slope_to(i + 1)
                                               : curve[i].seconds / std::max(1.0, curve[i].bytes));
    if (i > 0 && i + 2 < curve.size() && curve[i].bytes <= eager_limit_bytes &&
        eager_limit_bytes < curve[i + 1].bytes) {
      const line_fit below = line_by(curve[i], slope_to(i));
      const line_fit above = line_by(curve[i + 1], slope_to(i + 2));
      if (below.at(eager_limit_bytes) <= above.at(eager_limit_bytes)) {
        result.pieces.push_back({curve[i].bytes, below.alpha_s, below.s_per_byte});
        result.pieces.push_back({eager_limit_bytes + 1, above.alpha_s, above.s_per_byte});
        continue;
      }
    }
    // No size takes less than nothing, however steep the first step is.
    if (i == 0 && line.alpha_s < 0) result.pieces.push_back({0, curve[i].seconds, 0});
    result.pieces.push_back(
        {result.pieces.empty() ? 0 : curve[i].bytes, line.alpha_s, line.s_per_byte});
  }
  return result;
}

// The time of a message without bytes, and what the bytes add to it.
inline void scale(time_curve& curve, double empty, double bytes) {
  time_curve::piece before{};  // as it was
  for (std::size_t i = 0; i < curve.pieces.size(); ++i) {
    time_curve::piece& p = curve.pieces[i];
    // A step is what bytes add, too.
    const double from_s = i == 0 ? empty * p.alpha_s
                                 : curve.pieces[i - 1].at_s(p.from_bytes) +
                                       bytes * (p.at_s(p.from_bytes) - before.at_s(p.from_bytes));
    before = p;
    p.s_per_byte *= bytes;
    p.alpha_s = from_s - p.from_bytes * p.s_per_byte;
  }
}

}  // namespace detail

/// Piecewise LogGP of one link class; one_way_s and busy_s of the result grow with the size. The
/// latency is that between ranks in a collective, so with a wait for the receiver's core.
/// Throws error without a one-way time of the class.
inline link_model fit_link(const measurements& m, link_class link) {
  std::vector<detail::timed_size> one_way, streams, sends, receives, exchanges, shifts, flows,
      crowds;
  for (const link_sample& s : m.links) {
    if (s.link != link) continue;
    one_way.push_back({double(s.bytes), s.one_way_s});
    if (s.send_overhead_s) sends.push_back({double(s.bytes), *s.send_overhead_s});
    if (s.receive_overhead_s) receives.push_back({double(s.bytes), *s.receive_overhead_s});
    if (s.exchange_s) exchanges.push_back({double(s.bytes), *s.exchange_s});
    if (s.shift_s) shifts.push_back({double(s.bytes), *s.shift_s});
    if (s.flow_s) flows.push_back({double(s.bytes), *s.flow_s});
    if (s.crowd_s) crowds.push_back({double(s.bytes), *s.crowd_s});
  }
  for (const stream_sample& s : m.streams)
    if (s.link == link) streams.push_back({double(s.bytes), s.busy_s});
  if (one_way.empty()) throw error("fit: expected at least one one-way time of the link class");
  detail::sort_by_size(one_way);
  detail::sort_by_size(streams);

  std::vector<double> starts = detail::find_pieces(one_way, streams);
  const auto largest_below = [&](double bytes) {
    double largest = 0;
    for (const auto& p : one_way)
      if (p.bytes < bytes) largest = p.bytes;
    return largest;
  };

  link_model result;
  // The eager limit: as measured; else where synchronous mode stops costing more; else the cut with
  // the largest step.
  if (const auto known = m.eager_limits_bytes.find(link); known != m.eager_limits_bytes.end()) {
    result.eager_limit_bytes = double(known->second);
    for (std::size_t k = 1; k < starts.size(); ++k) {
      const auto next = std::find_if(one_way.begin(), one_way.end(),
                                     [&](const auto& p) { return p.bytes >= starts[k]; });
      if (starts[k] <= result.eager_limit_bytes && result.eager_limit_bytes < next->bytes)
        starts[k] = result.eager_limit_bytes + 1;
    }
  } else {
    bool known_from_modes = false;
    for (const link_sample& s : m.links)
      if (s.link == link && s.rendezvous_s && s.one_way_s < 0.9 * *s.rendezvous_s &&
          (!known_from_modes || double(s.bytes) > result.eager_limit_bytes)) {
        result.eager_limit_bytes = double(s.bytes);
        known_from_modes = true;
      }
    double largest = 1.1;
    for (std::size_t k = 1; k < starts.size() && !known_from_modes; ++k) {
      const double before = starts[k - 1];
      const double below =
          k + 1 < starts.size() ? starts[k + 1] : std::numeric_limits<double>::infinity();
      const double step =
          detail::robust_line(detail::between(one_way, starts[k], below)).at(starts[k]) /
          detail::robust_line(detail::between(one_way, before, starts[k])).at(starts[k]);
      if (step <= largest) continue;
      largest = step;
      result.eager_limit_bytes = largest_below(starts[k]);
    }
  }

  const auto alone = detail::monotone_curve(one_way, starts);
  const auto busy = detail::monotone_curve(streams, starts);
  constexpr double beyond = std::numeric_limits<double>::infinity();
  std::vector<double> ends;  // of pieces of either curve
  for (const auto* curve : {&alone, &busy})
    for (const detail::curve_piece& piece : *curve) ends.push_back(piece.from_bytes);
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  for (const double from : ends) {
    // Overheads are told apart as coarsely as the pieces were found.
    const auto next = std::upper_bound(starts.begin(), starts.end(), from);
    const double below = next == starts.end() ? beyond : *next;
    const double limit = result.eager_limit_bytes;
    const auto overhead = [&](const std::vector<detail::timed_size>& points) {
      return detail::overhead_line(detail::between(points, *(next - 1), below),
                                   from <= limit ? detail::between(points, 0, limit + 1)
                                                 : detail::between(points, limit + 1, beyond));
    };
    const line_fit sending = overhead(sends), receiving = overhead(receives);
    const line_fit& line = detail::line_for(alone, from);
    // The overheads are part of the one-way time, whatever their measurement says.
    const auto share = [](double most, double sum) {
      return sum > most ? std::max(0.0, most) / sum : 1.0;
    };
    const double of_message = share(line.alpha_s, sending.alpha_s + receiving.alpha_s);
    const double of_byte = share(line.s_per_byte, sending.s_per_byte + receiving.s_per_byte);
    link_piece piece{.from_bytes = from};
    piece.send_overhead_s = of_message * sending.alpha_s;
    piece.receive_overhead_s = of_message * receiving.alpha_s;
    piece.send_overhead_s_per_byte = of_byte * sending.s_per_byte;
    piece.receive_overhead_s_per_byte = of_byte * receiving.s_per_byte;
    piece.latency_s =
        std::max(0.0, line.alpha_s - piece.send_overhead_s - piece.receive_overhead_s);
    piece.gap_s = piece.send_overhead_s;
    piece.gap_s_per_byte = line.s_per_byte;
    if (!busy.empty()) {
      const line_fit& stream = detail::line_for(busy, from);
      piece.gap_s = stream.alpha_s;
      piece.gap_s_per_byte = stream.s_per_byte;
      piece.latency_s_per_byte = line.s_per_byte - stream.s_per_byte;
    }
    result.pieces.push_back(piece);
  }
  result.exchange = detail::fit_curve(exchanges, result.eager_limit_bytes);
  result.shift = detail::fit_curve(shifts, result.eager_limit_bytes);
  result.flow = detail::fit_curve(flows, result.eager_limit_bytes);
  result.crowd = detail::fit_curve(crowds, result.eager_limit_bytes);
  result.residual_spread =
      detail::residual_spread(one_way, [&](double n) { return result.one_way_s(n); });

  // One-way times are taken while all other ranks sleep. In a collective they wait inside MPI, too:
  // where ranks share cores a message then waits for its receiver's turn. The ring tells how long.
  constexpr std::int64_t short_bytes = 256;
  std::vector<double> waits_s;
  for (const link_sample& s : m.links)
    if (s.link == link && s.shift_s && s.bytes <= short_bytes)
      waits_s.push_back(*s.shift_s - s.one_way_s);
  if (!waits_s.empty())
    for (link_piece& piece : result.pieces) piece.latency_s += std::max(0.0, median(waits_s));
  return result;
}

/// Line through the times of local work; the default model without samples.
inline local_model fit_local(std::span<const local_sample> samples) {
  std::vector<detail::timed_size> points;
  for (const local_sample& s : samples)
    if (s.seconds > 0) points.push_back({double(s.bytes), s.seconds});
  if (points.empty()) return {};
  const line_fit line = detail::robust_line(points);
  return {.alpha_s = line.alpha_s, .s_per_byte = line.s_per_byte};
}

/// Link parameters and corrections of the algorithms from times of collectives.
struct collective_fit {
  machine_model machine;
  std::vector<algorithm_correction> corrections;
  double residual_spread = 0;  ///< of ln(measured / corrected closed form) over all of them
};

namespace detail {

// What a measured time is off by. A run is now and then a hundred times too slow, where ranks wait
// for a core: Student's t with one degree of freedom. The median of n such values has the tails of
// (n + 1) / 2 degrees.
struct time_error {
  double variance = 0;  // of ln(seconds), rare slow runs apart; 0: as good as any
  double freedom = 1;

  // Of this time, if its squared error is expected to be `squared` (Lange, Little, Taylor,
  // doi:10.1080/01621459.1989.10478852).
  double variance_given(double squared) const {
    return variance > 0 ? (freedom * variance + squared) / (freedom + 1) : 0;
  }
};

inline time_error error_of(const collective_time& t) {
  if (t.runs < 1) return {};
  const auto runs = double(t.runs);
  const double spread = std::min(t.run_spread, select::detail::most_misfit);
  return {.variance = 0.5 * std::numbers::pi * spread * spread / runs, .freedom = 0.5 * (runs + 1)};
}

struct known_time {
  arm what;
  int family = 0;  // index into the algorithms that occur
  const collective_time* measured = nullptr;

  /// On any machine.
  cost_query call(const machine_model& machine) const {
    return {.machine = machine,
            .num_ranks = measured->num_ranks,
            .ranks_per_node = measured->ranks_per_node,
            .bytes = double(measured->bytes),
            .unit_bytes = double(unit_bytes_of(what.base->op, measured->bytes))};
  }
};

// The unknowns: logarithms of what the machine's parameters and the algorithms' closed forms are
// multiplied with. Pieces of a link share their scales if their proportions were sampled.
class collective_problem {
 public:
  collective_problem(machine_model start, std::span<const known_time> known, int num_families,
                     bool shared_scales, double trust_spread)
      : start_(std::move(start)), known_(known), shared_(shared_scales) {
    // Prior standard deviations of the logarithms: what the times do not tell stays as it was.
    std::vector<double> spreads{trust_spread};  // of the first scale, local work
    for (const link_model* link : {&start_.same_node, &start_.across_nodes}) {
      first_scale_.push_back(int(spreads.size()));
      spreads.push_back(overhead_spread);
      for (std::size_t k = 0; k < (shared_ ? 1 : link->pieces.size()); ++k)
        spreads.insert(spreads.end(),
                       {trust_spread, trust_spread, std::min(trust_spread, burst_spread)});
    }
    num_scales_ = int(spreads.size());
    spreads.insert(spreads.end(), std::size_t(num_families), factor_spread);
    prior_ = Eigen::Map<const Eigen::VectorXd>(spreads.data(), Eigen::Index(spreads.size()));
    theta_ = Eigen::VectorXd::Zero(prior_.size());
    residuals_ = residuals_at(theta_);
    // At first all of a residual is thought to be the time's error.
    errors_ = Eigen::VectorXd(residuals_.size());
    for (Eigen::Index i = 0; i < residuals_.size(); ++i)
      errors_(i) = error_at(i).variance_given(residuals_(i) * residuals_(i));
    solve();
  }

  machine_model machine() const { return machine_at(theta_); }
  double factor(int family) const { return std::exp(theta_(num_scales_ + family)); }
  const Eigen::VectorXd& residuals() const { return residuals_; }
  /// Comparable between problems with the same times.
  double cost() const {
    constexpr double misfit = 0.1;
    Eigen::VectorXd scales(residuals_.size());
    for (Eigen::Index i = 0; i < scales.size(); ++i)
      scales(i) = std::sqrt(misfit * misfit + error_at(i).variance);
    return cost_at(residuals_, theta_, scales);
  }

 private:
  // Per piece: latency, bytes of a stream, bytes of a message alone against those of a stream.
  static constexpr int num_piece_scales = 3;
  // Ranks that share cores have more overhead per message than two idle ones, where links are
  // sampled: up to e^2.5 times this, and more where it must be. Never less: what a rank does for a
  // message does not vanish because closed forms count too many of them.
  static constexpr double typical_overhead_s = 1e-6, overhead_spread = 2.5;
  static constexpr double burst_spread = 0.5, factor_spread = 0.25;

  machine_model machine_at(const Eigen::VectorXd& theta) const {
    machine_model m = start_;
    for (local_model* l : {&m.copy, &m.reduce}) {
      l->alpha_s *= std::exp(theta(0));
      l->s_per_byte *= std::exp(theta(0));
    }
    std::size_t number = 0;
    for (link_model* link : {&m.same_node, &m.across_nodes}) {
      const int first = first_scale_[number++];
      double overhead_s = typical_overhead_s * (std::exp(theta(first)) - 1);
      if (shared_) overhead_s = std::max(0.0, overhead_s);
      for (std::size_t k = 0; k < link->pieces.size(); ++k) {
        link_piece& p = link->pieces[k];
        const int mine = first + 1 + (shared_ ? 0 : num_piece_scales * int(k));
        const double alone = p.gap_s_per_byte + p.latency_s_per_byte;
        p.send_overhead_s = std::max(0.0, p.send_overhead_s + overhead_s);
        p.receive_overhead_s = std::max(0.0, p.receive_overhead_s + overhead_s);
        p.latency_s *= std::exp(theta(mine));
        p.gap_s_per_byte *= std::exp(theta(mine + 1));
        p.latency_s_per_byte =
            alone * std::exp(theta(mine + 1) + theta(mine + 2)) - p.gap_s_per_byte;
        if (k == 0) continue;
        // Scaling one piece more than its neighbour must not make a step down.
        const link_piece& before = link->pieces[k - 1];
        const auto end_s = [&](const link_piece& piece) {
          return piece.send_overhead_s + piece.latency_s + piece.receive_overhead_s +
                 p.from_bytes * (piece.gap_s_per_byte + piece.latency_s_per_byte);
        };
        p.latency_s += std::max(0.0, end_s(before) - end_s(p));
      }
      for (time_curve* curve : {&link->exchange, &link->shift, &link->flow, &link->crowd})
        scale(*curve, std::exp(theta(first + 1)), std::exp(theta(first + 2)));
    }
    return m;
  }

  Eigen::VectorXd residuals_at(const Eigen::VectorXd& theta) const {
    const machine_model machine = machine_at(theta);
    Eigen::VectorXd r(Eigen::Index(known_.size()));
    for (std::size_t i = 0; i < known_.size(); ++i) {
      const known_time& k = known_[i];
      const double closed_form = k.what.base->cost_s(k.call(machine), k.what.values);
      r(Eigen::Index(i)) = std::log(k.measured->median_s / std::max(closed_form, 1e-12)) -
                           theta(num_scales_ + k.family);
    }
    return r;
  }

  double cost_at(const Eigen::VectorXd& r, const Eigen::VectorXd& theta,
                 const Eigen::VectorXd& scales) const {
    double cost = 0.5 * theta.cwiseQuotient(prior_).squaredNorm();
    for (const double x : r.cwiseQuotient(scales)) cost += huber_cost(x);
    return cost;
  }

  time_error error_at(Eigen::Index i) const { return error_of(*known_[std::size_t(i)].measured); }

  // Standard deviations of the residuals: what the closed forms are off by, and the times' errors,
  // which are estimated anew.
  Eigen::VectorXd scales() {
    constexpr double outlier = 4;  // times the usual variance
    std::vector<double> usual;
    for (Eigen::Index i = 0; i < errors_.size(); ++i)
      if (errors_(i) <= outlier * error_at(i).variance) usual.push_back(residuals_(i));
    if (usual.empty()) usual.assign(residuals_.begin(), residuals_.end());
    const double spread = std::max(0.05, robust_spread(usual));
    const double misfit = spread * spread;
    for (Eigen::Index i = 0; i < errors_.size(); ++i) {
      const double share = errors_(i) / (errors_(i) + misfit), part = share * residuals_(i);
      errors_(i) = error_at(i).variance_given(part * part + share * misfit);
    }
    return (errors_.array() + misfit).sqrt();
  }

  void solve() {
    double damping = 1e-2;
    for (int iteration = 0; iteration < 100; ++iteration) {
      const Eigen::VectorXd scale = scales();
      Eigen::MatrixXd jacobian = Eigen::MatrixXd::Zero(residuals_.size(), theta_.size());
      constexpr double step = 1e-4;
      for (int k = 0; k < num_scales_; ++k) {
        Eigen::VectorXd moved = theta_;
        moved(k) += step;
        jacobian.col(k) = (residuals_at(moved) - residuals_) / step;
      }
      Eigen::VectorXd weights(residuals_.size());
      for (Eigen::Index i = 0; i < residuals_.size(); ++i) {
        jacobian(i, num_scales_ + known_[std::size_t(i)].family) = -1;
        weights(i) = huber_weight(residuals_(i) / scale(i)) / (scale(i) * scale(i));
      }
      const Eigen::VectorXd precision = prior_.array().square().inverse();
      const Eigen::MatrixXd normal = jacobian.transpose() * weights.asDiagonal() * jacobian +
                                     Eigen::MatrixXd(precision.asDiagonal());
      const Eigen::VectorXd gradient = jacobian.transpose() * (weights.asDiagonal() * residuals_) +
                                       precision.cwiseProduct(theta_);
      const double cost = cost_at(residuals_, theta_, scale);
      double change = 0;
      for (; damping < 1e8; damping *= 4) {
        Eigen::MatrixXd damped = normal;
        damped.diagonal() *= 1 + damping;
        const Eigen::VectorXd trial = theta_ - damped.ldlt().solve(gradient);
        const Eigen::VectorXd trial_residuals = residuals_at(trial);
        if (!trial_residuals.allFinite() || cost_at(trial_residuals, trial, scale) >= cost)
          continue;
        change = (trial - theta_).cwiseAbs().maxCoeff();
        theta_ = trial;
        residuals_ = trial_residuals;
        damping /= 10;
        break;
      }
      if (change < 1e-6) return;
    }
  }

  machine_model start_;
  std::span<const known_time> known_;
  bool shared_;
  std::vector<int> first_scale_;
  int num_scales_ = 0;
  Eigen::VectorXd prior_, theta_, residuals_;
  Eigen::VectorXd errors_;  // variances
};

// Weights that make a Gaussian process of these residuals. At first all of a residual is thought to
// be the time's error, if it has one, then as much as the others leave. A residual that is four
// standard deviations away from what the others say, the worst one first, is what this arm alone is
// off by, or noise if nobody knows how well it was measured and it is too long: nothing makes a
// call too short. A well-measured one that stays away even so is believed: closed forms jump.
inline std::vector<algorithm_correction::point> weigh(std::span<const misfit_place> places,
                                                      std::span<const double> residuals,
                                                      std::span<const time_error> errors) {
  constexpr double most_deviations = 4, settled = 0.01;
  constexpr int most_rounds = 100;
  const auto n = Eigen::Index(places.size());
  Eigen::MatrixXd covariance(n, n);
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index k = 0; k < n; ++k)
      covariance(i, k) = select::misfit_covariance(places[std::size_t(i)], places[std::size_t(k)]);
  covariance.diagonal().array() += select::detail::misfit_noise * select::detail::misfit_noise;
  const Eigen::Map<const Eigen::VectorXd> r(residuals.data(), n);
  Eigen::VectorXd weights, noise(n);
  Eigen::VectorXd disbelieved = Eigen::VectorXd::Zero(n), own = disbelieved;  // variances
  Eigen::VectorXd in_question = Eigen::VectorXd::Ones(n);
  const auto shares_of = [&](Eigen::Index i) {
    Eigen::VectorXd shares(n);
    for (Eigen::Index k = 0; k < n; ++k)
      shares(k) = select::own_share(places[std::size_t(i)], places[std::size_t(k)]);
    return shares;
  };
  for (Eigen::Index i = 0; i < n; ++i)
    noise(i) = errors[std::size_t(i)].variance_given(r(i) * r(i));
  covariance.diagonal() += noise;
  for (Eigen::Index round = 0; round <= most_rounds + n; ++round) {
    const Eigen::MatrixXd inverse = covariance.inverse();
    weights = inverse * r;
    // What is expected of the squared errors.
    const Eigen::ArrayXd squared = (noise.array() * weights.array()).square() +
                                   noise.array() * (1 - noise.array() * inverse.diagonal().array());
    double change = 0;
    for (Eigen::Index i = 0; i < n && round < most_rounds; ++i) {
      const double before = noise(i);
      noise(i) = errors[std::size_t(i)].variance_given(squared(i));
      covariance(i, i) += noise(i) - before;
      if (before > 0) change = std::max(change, std::abs(noise(i) / before - 1));
    }
    if (change > settled) continue;
    // Of each from the others: weight / inverse(i, i) away, with 1 / inverse(i, i) as variance.
    const Eigen::VectorXd deviations =
        weights.cwiseAbs().cwiseQuotient(inverse.diagonal().cwiseSqrt());
    Eigen::Index worst = 0;
    if (deviations.cwiseProduct(in_question).maxCoeff(&worst) <= most_deviations) break;
    const double away = weights(worst) / inverse(worst, worst);
    const bool well_measured = errors[std::size_t(worst)].variance > 0;
    if (own(worst) > 0 && well_measured) {
      in_question(worst) = 0;
    } else if (own(worst) > 0 || (away > 0 && !well_measured)) {
      disbelieved(worst) += away * away;
      covariance(worst, worst) += away * away;
    } else {
      own(worst) = away * away;
      const Eigen::VectorXd shares = shares_of(worst);
      covariance += own(worst) * shares * shares.transpose();
    }
  }
  std::vector<algorithm_correction::point> result;
  for (Eigen::Index i = 0; i < n; ++i)
    result.push_back({.place = places[std::size_t(i)],
                      .weight = weights(i),
                      .noise = std::sqrt(noise(i) + disbelieved(i)),
                      .own = own(i) > 0 ? own(i) * shares_of(i).dot(weights) : 0});
  return result;
}

}  // namespace detail

/// How far the machine that a fit of collectives starts from may be off: its links were sampled, or
/// only their order of magnitude is guessed.
enum class machine_trust { sampled, guessed };

/// Fits what `times` tell about `start`: times of arms without a closed form, of one rank, and of
/// messages without bytes tell nothing and are passed over. Where the links are guessed they may
/// get a second piece, for a change of protocol. Throws error if an arm is unknown or nothing is
/// left.
inline collective_fit fit_collectives(const machine_model& start,
                                      std::span<const collective_time> times, machine_trust trust) {
  std::vector<detail::known_time> known;
  std::vector<const algorithm*> families;
  for (const collective_time& t : times) {
    const auto op = find_collective(t.collective);
    if (!op) throw error("fit: there is no collective '" + t.collective + "'");
    const arm a = parse_arm(*op, t.arm);
    if (!a.base->cost_s || t.num_ranks < 2 || t.bytes < 1) continue;
    const auto family = std::find(families.begin(), families.end(), a.base);
    known.push_back({a, int(family - families.begin()), &t});
    if (family == families.end()) families.push_back(a.base);
  }
  if (known.empty())
    throw error("fit: expected times of at least one algorithm with a closed form");

  const bool sampled = trust == machine_trust::sampled;
  detail::collective_problem best(start, known, int(families.size()), sampled, sampled ? 0.1 : 2.5);
  if (!sampled) {
    constexpr double price = 4;  // of two more numbers and a place
    const double one_piece = best.cost() - price;
    double least = one_piece;
    for (double cut = 2048; cut <= 256 * 1024; cut *= 2) {
      machine_model two = start;
      for (link_model* link : {&two.same_node, &two.across_nodes}) {
        link->pieces = {link->pieces.front(), link->pieces.front()};
        link->pieces[1].from_bytes = cut + 1;
      }
      detail::collective_problem trial(two, known, int(families.size()), false, 2.5);
      if (trial.cost() >= least) continue;
      least = trial.cost();
      best = std::move(trial);
    }
  }

  const Eigen::VectorXd& r = best.residuals();
  collective_fit result{
      .machine = best.machine(),
      .corrections = {},
      .residual_spread = std::max(detail::least_residual_spread,
                                  robust_spread({r.data(), std::size_t(r.size())}))};
  for (std::size_t f = 0; f < families.size(); ++f) {
    std::vector<misfit_place> places;
    std::vector<double> residuals, seconds;
    std::vector<detail::time_error> errors;
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (known[i].family != int(f)) continue;
      seconds.push_back(known[i].measured->median_s);
      places.push_back(select::misfit_place_of(known[i].what, known[i].call(result.machine)));
      residuals.push_back(r(Eigen::Index(i)));
      errors.push_back(detail::error_of(*known[i].measured));
    }
    algorithm_correction correction{.collective = std::string(name_of(families[f]->op)),
                                    .algorithm = std::string(families[f]->name),
                                    .factor = best.factor(int(f)),
                                    .points = detail::weigh(places, residuals, errors)};
    for (std::size_t i = 0; i < seconds.size(); ++i) correction.points[i].seconds = seconds[i];
    result.corrections.push_back(std::move(correction));
  }
  return result;
}

/// Everything that measurements tell about a machine. A link class without samples gets the other
/// one's model and a wide spread. Throws error if there is neither a one-way time of a link nor a
/// time of a collective.
inline profile fit_profile(const measurements& m, const fingerprint& machine_id,
                           std::string sampled_at) {
  profile result{.machine_id = machine_id, .sampled_at = std::move(sampled_at)};
  result.machine = select::generic_machine();
  if (!m.copies.empty()) result.machine.copy = fit_local(m.copies);
  if (!m.reductions.empty()) result.machine.reduce = fit_local(m.reductions);

  const auto sampled = [&](link_class link) {
    return std::any_of(m.links.begin(), m.links.end(),
                       [&](const link_sample& s) { return s.link == link; });
  };
  const bool same_node = sampled(link_class::same_node), across = sampled(link_class::across_nodes);
  if (same_node) result.machine.same_node = fit_link(m, link_class::same_node);
  if (across) result.machine.across_nodes = fit_link(m, link_class::across_nodes);
  constexpr double unknown_spread = 1;
  if (same_node && !across) {
    result.machine.across_nodes = result.machine.same_node;
    result.machine.across_nodes.residual_spread = unknown_spread;
  }
  if (across && !same_node) {
    result.machine.same_node = result.machine.across_nodes;
    result.machine.same_node.residual_spread = unknown_spread;
  }

  bool any_closed_form = false;
  std::map<std::tuple<std::string, int, int, std::int64_t>, std::vector<double>> native;
  for (const collective_time& t : m.collectives) {
    const auto op = find_collective(t.collective);
    const algorithm* base =
        op ? find_algorithm(*op, std::string_view(t.arm).substr(0, t.arm.find('+'))) : nullptr;
    if (base && base->is_native())
      native[{t.collective, t.num_ranks, t.ranks_per_node, t.bytes}].push_back(t.median_s);
    else
      any_closed_form = true;
  }
  for (const auto& [key, seconds] : native) {
    const auto& [collective, num_ranks, ranks_per_node, bytes] = key;
    result.measured.push_back({.collective = collective,
                               .arm = "native",
                               .num_ranks = num_ranks,
                               .ranks_per_node = ranks_per_node,
                               .bytes = bytes,
                               .median_s = median(seconds)});
  }
  if (any_closed_form) {
    collective_fit fit =
        fit_collectives(result.machine, m.collectives,
                        same_node || across ? machine_trust::sampled : machine_trust::guessed);
    result.machine = std::move(fit.machine);
    result.corrections = std::move(fit.corrections);
    if (!same_node && !across)
      result.machine.same_node.residual_spread = result.machine.across_nodes.residual_spread =
          fit.residual_spread;
  } else if (!same_node && !across) {
    throw error("fit: expected one-way times of a link or times of algorithms, found neither");
  }
  return result;
}

}  // namespace railpass

// SPDX-License-Identifier: BSL-1.0
//
// From sampled times to models of links and of local work.
#pragma once

#include "models/samples.hpp"
#include "railpass/base/error.hpp"
#include "railpass/fit/lines.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <vector>

namespace railpass {

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
  const double beyond = std::numeric_limits<double>::infinity();
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

}  // namespace railpass

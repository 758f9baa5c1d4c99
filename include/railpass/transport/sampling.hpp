// SPDX-License-Identifier: BSL-1.0
//
// Converts measurements between two ranks to parameters of their rails: times, thresholds between
// two protocols, and the set of rails that is worth combining. The measurements are made in
// lib/rails. Source: Brunet, Trahay, Denis, Namyst: A sampling-based approach for communication
// libraries auto-tuning, IEEE Cluster 2011, https://hal.inria.fr/inria-00605735.
#pragma once

#include "railpass/base/error.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/transport/link_profile.hpp"
#include "railpass/transport/wire.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace railpass::transport {

/// The median of the times at one size, and the standard error of the median.
struct measured_time {
  double bytes = 0;
  double seconds = 0;
  double error_s = 0;
};

/// Times in the order of size.
using time_curve = std::vector<measured_time>;

/// The size from which another protocol is faster.
class threshold {
 public:
  static threshold always() { return threshold(0); }
  static threshold never() { return threshold(std::numeric_limits<double>::infinity()); }
  static threshold from(double bytes) { return threshold(bytes); }
  bool is_always() const { return bytes_ == 0; }
  bool is_never() const { return std::isinf(bytes_); }
  /// The largest size for the first protocol, but at most `most_bytes`.
  std::int64_t up_to(std::int64_t most_bytes) const {
    return bytes_ >= double(most_bytes) ? most_bytes : std::int64_t(bytes_);
  }
  double bytes() const { return bytes_; }  ///< 0: always; infinity: never

 private:
  explicit threshold(double bytes) : bytes_(bytes) {}
  double bytes_;
};

/// The gain that justifies another protocol.
inline constexpr double least_gain = 0.03;

/// Returns the size from which to use `after`. A protocol is clearly faster at a size if it takes
/// less than (1 - gain) of the other protocol's time, and by more than one and a half standard
/// errors (of that size, and the usual one of all sizes). The threshold minimises the total loss
/// over all common sizes; among equals the largest wins, and the exact size is interpolated
/// linearly. `after` is never used unless it is clearly faster at two larger sizes, or at one size
/// by twice the required gain: a single lucky measurement makes no crossing.
inline threshold crossing(const time_curve& before, const time_curve& after,
                          double gain = least_gain) {
  struct both {
    double bytes, before_s, after_s, error;  // of the difference, relative to the slower time

    double difference() const { return (before_s - after_s) / std::max(before_s, after_s); }
  };
  std::vector<both> common;
  std::vector<double> errors;
  for (const measured_time& b : before)
    for (const measured_time& a : after)
      if (a.bytes == b.bytes) {
        errors.push_back(std::hypot(a.error_s, b.error_s) / std::max(a.seconds, b.seconds));
        common.push_back({b.bytes, b.seconds, a.seconds, errors.back()});
      }
  if (common.empty()) return threshold::never();
  const double usual_error = median(errors);
  const auto asked = [&](const both& c) {
    return std::min(1.0, std::max(gain, 1.5 * std::max(c.error, usual_error)));
  };
  std::size_t first = common.size();
  int evidence = 0, evidence_so_far = 0;
  double lost = 0, least_lost = 0;  // by `after` from a size on, minus the loss of `before`
  for (std::size_t i = common.size(); i-- > 0;) {
    const double difference = common[i].difference(), least = asked(common[i]);
    if (difference > least) evidence_so_far += difference > 2 * least ? 2 : 1;
    lost +=
        difference > 0 ? -std::max(0.0, difference - least) : std::max(0.0, -difference - least);
    if (lost >= least_lost) continue;
    least_lost = lost;
    first = i;
    evidence = evidence_so_far;
  }
  if (evidence < 2) return threshold::never();
  if (first == 0) return threshold::always();
  const auto over_s = [&](const both& c) { return c.after_s - (1 - asked(c)) * c.before_s; };
  const both &left = common[first - 1], &right = common[first];
  const double left_s = std::max(0.0, over_s(left)), right_s = std::min(0.0, over_s(right));
  return threshold::from(left.bytes + (right.bytes - left.bytes) * left_s / (left_s - right_s));
}

/// One rail alone. Times are half of a round trip with messages of equal size.
struct rail_samples {
  time_curve copied;       ///< eager, pieces copied behind the header
  time_curve pieces;       ///< eager, pieces read by the network
  time_curve rendezvous;   ///< announced, asked for, sent
  time_curve two_packets;  ///< two messages of half the size each, separately
  time_curve aggregate;    ///< as two_packets, in one transmission
};

/// Several rails at the same time, by the receiver's clock.
struct joint_sample {
  std::vector<int> rails;  ///< ascending
  double bytes_per_s = 0;
};

/// Measurements of the rails between two ranks.
struct link_samples {
  time_curve memory_copy;  ///< a receiver's copy of a message that came too early
  std::vector<rail_samples> rails;
  std::vector<joint_sample> joint;  ///< each rail by itself, and sets of several
  time_curve together;              ///< messages split over the rails that combine, as rendezvous
};

/// Measurements between one pair of ranks, valid for all such pairs.
struct measured_link {
  bool same_host = false;
  std::vector<std::string> marks;  ///< what the rails were on either side; another one: other rails
  link_samples samples;
};

/// The stored part of a measurement.
struct rails_measurement {
  std::string railpass_version;
  std::string measured_at;  ///< UTC, 2026-01-31T12:00:00Z
  std::vector<measured_link> links;
};

/// Findings besides the profile that follows from them.
struct rail_findings {
  threshold pieces = threshold::always();      ///< from here copying is slower
  threshold rendezvous = threshold::never();   ///< from here asking first is faster
  threshold two_packets = threshold::never();  ///< from here aggregating is slower
};
struct link_findings {
  std::vector<rail_findings> rails;
  threshold split = threshold::never();  ///< from here several rails are faster than the best rail
  link_profile profile;
};

/// B(A) / sum of B(i): the rate of a set of rails relative to the rails' own rates. Empty if a rail
/// was not measured alone.
inline std::optional<double> additivity(const std::vector<joint_sample>& all,
                                        const joint_sample& set) {
  double sum = 0;
  for (const int rail : set.rails) {
    const auto alone = std::find_if(all.begin(), all.end(), [&](const joint_sample& s) {
      return s.rails.size() == 1 && s.rails[0] == rail;
    });
    if (alone == all.end()) return std::nullopt;
    sum += alone->bytes_per_s;
  }
  return set.bytes_per_s / sum;
}

/// The smallest set of rails with (almost) the highest measured rate. Other rails share a
/// bottleneck with these, or are too slow to matter. All rails if no set was measured.
inline std::vector<int> rails_that_combine(const std::vector<joint_sample>& all, int num_rails) {
  double most = 0;
  for (const joint_sample& s : all) most = std::max(most, s.bytes_per_s);
  const joint_sample* best = nullptr;
  for (const joint_sample& s : all)
    if (s.bytes_per_s * (1 + least_gain) >= most &&
        (!best || s.rails.size() < best->rails.size() ||
         (s.rails.size() == best->rails.size() && s.bytes_per_s > best->bytes_per_s)))
      best = &s;
  if (best) return best->rails;
  std::vector<int> every;
  for (int r = 0; r < num_rails; ++r) every.push_back(r);
  return every;
}

namespace detail {

inline const measured_time* at_size(const time_curve& curve, double bytes) {
  for (const measured_time& p : curve)
    if (p.bytes == bytes) return &p;
  return nullptr;
}

inline std::vector<transfer_time::point> points_of(const time_curve& curve) {
  std::vector<transfer_time::point> points;
  for (const measured_time& t : curve) points.push_back({t.bytes, t.seconds});
  return points;
}

// The time at any size, interpolated between samples and extrapolated with the last slopes.
inline double interpolated_s(const time_curve& curve, double bytes) {
  if (curve.empty()) return 0;
  if (curve.size() == 1) return curve.front().seconds;
  return transfer_time(points_of(curve)).time_s(bytes);
}

inline time_curve quicker_of(const time_curve& a, const time_curve& b, threshold from_b) {
  time_curve result;
  for (const measured_time& p : from_b.is_never() ? a : b) {
    const measured_time* const q = at_size(p.bytes < from_b.bytes() ? a : b, p.bytes);
    result.push_back(q ? *q : p);
  }
  return result;
}

}  // namespace detail

/// Eager times: the faster of copying and not copying, without a copy at the receiver.
inline time_curve eager_times(const rail_samples& rail, threshold pieces) {
  return detail::quicker_of(rail.copied, rail.pieces, pieces);
}

/// Eager times with the receiver's copy, which asking first avoids.
inline time_curve eager_times_with_copy(const time_curve& eager, const time_curve& memory_copy) {
  time_curve result = eager;
  for (measured_time& p : result)
    p.seconds += std::max(0.0, detail::interpolated_s(memory_copy, p.bytes));
  return result;
}

/// The cost of announcing and asking: the median over the sizes sent with both protocols.
inline double handshake_s(const time_curve& eager, const time_curve& rendezvous) {
  std::vector<double> differences;
  for (const measured_time& e : eager)
    if (const measured_time* const r = detail::at_size(rendezvous, e.bytes))
      differences.push_back(r->seconds - e.seconds);
  return differences.empty() ? 0 : std::max(0.0, median(differences));
}

/// The rail's time for bytes that it may carry at once. Up to the largest eager size the measured
/// times count, then rendezvous times minus the handshake. The result is exact at the measured
/// sizes, unless times decrease with size. Beyond, the rate between the largest size and a quarter
/// of it continues, because two neighbouring sizes are too uncertain.
/// @throws error with fewer than two sizes
inline transfer_time delivery_time(const time_curve& eager, const time_curve& rendezvous) {
  std::vector<transfer_time::point> points = detail::points_of(eager);
  const double asking_s = handshake_s(eager, rendezvous);
  for (const measured_time& r : rendezvous)
    if (points.empty() || r.bytes > points.back().bytes)
      points.push_back({r.bytes, std::max(0.0, r.seconds - asking_s)});
  if (points.size() < 2) throw error("samples of a rail: expected times of two sizes or more");
  // The line through the first two points gives the time of an empty message.
  if (points.front().bytes > 0) {
    const double slope =
        (points[1].seconds - points[0].seconds) / (points[1].bytes - points[0].bytes);
    points.insert(points.begin(),
                  {0, std::clamp(points[0].seconds - std::max(0.0, slope) * points[0].bytes, 0.0,
                                 points[0].seconds)});
  }
  const transfer_time::point last = points.back();
  const auto quarter = std::find_if(points.rbegin(), points.rend(),
                                    [&](const auto& p) { return p.bytes <= last.bytes / 4; });
  if (quarter != points.rend() && last.seconds > quarter->seconds) {
    const double slope = (last.seconds - quarter->seconds) / (last.bytes - quarter->bytes);
    points.push_back({2 * last.bytes, last.seconds + slope * last.bytes});
  }
  return transfer_time(std::move(points));
}

/// Runs the whole analysis.
/// @throws error if a rail has too few samples
inline link_findings analyse(const link_samples& samples) {
  link_findings found;
  constexpr auto most_eager = std::int64_t(most_eager_bytes);
  std::vector<time_curve> eager;
  for (const rail_samples& s : samples.rails) {
    rail_findings f;
    rail_profile p;
    f.pieces = crossing(s.copied, s.pieces);
    eager.push_back(eager_times(s, f.pieces));
    f.rendezvous = crossing(eager_times_with_copy(eager.back(), samples.memory_copy), s.rendezvous);
    f.two_packets = crossing(s.aggregate, s.two_packets);
    p.time = delivery_time(eager.back(), s.rendezvous);
    p.handshake_s = handshake_s(eager.back(), s.rendezvous);
    p.thresholds.eager_bytes = f.rendezvous.up_to(most_eager);
    p.thresholds.copy_bytes =
        s.copied.empty() ? 0 : std::min(f.pieces.up_to(most_eager), p.thresholds.eager_bytes);
    p.thresholds.aggregate_bytes = f.two_packets.up_to(most_eager);
    found.rails.push_back(f);
    found.profile.rails.push_back(std::move(p));
  }
  const int num_rails = int(samples.rails.size());
  const std::vector<int> combining = rails_that_combine(samples.joint, num_rails);
  for (int r = 0; r < num_rails; ++r)
    found.profile.rails[std::size_t(r)].spare =
        std::find(combining.begin(), combining.end(), r) == combining.end();
  if (combining.size() < 2) return found;

  // The best single rail with either protocol, compared with all rails that combine.
  time_curve best;
  for (const measured_time& t : samples.together) {
    double best_s = std::numeric_limits<double>::infinity();
    for (std::size_t r = 0; r < samples.rails.size(); ++r) {
      const rail_profile& p = found.profile.rails[r];
      const bool at_once = t.bytes <= double(p.thresholds.eager_bytes);
      best_s = std::min(best_s, p.time.time_s(t.bytes) + (at_once ? 0 : p.handshake_s));
    }
    best.push_back({t.bytes, best_s});
  }
  found.split = crossing(best, samples.together);
  if (found.split.is_never()) {  // at no measured size
    for (std::size_t r = 0; r < samples.rails.size(); ++r) {
      const auto rate = [&](std::size_t i) { return found.profile.rails[i].time.bytes_per_s(); };
      std::size_t quickest = 0;
      for (std::size_t i = 1; i < samples.rails.size(); ++i)
        if (rate(i) > rate(quickest)) quickest = i;
      found.profile.rails[r].spare = !samples.together.empty() && r != quickest;
    }
    return found;
  }
  const double from = found.split.is_always() ? best.front().bytes : found.split.bytes();
  std::vector<rail_outlook> rails;
  for (const rail_profile& p : found.profile.rails)
    rails.push_back({.time = &p.time, .busy_s = 0, .spare = p.spare});
  std::vector<std::int64_t> shares(rails.size());
  split(rails, std::max<std::int64_t>(1, std::int64_t(from)), 1, shares);
  std::int64_t least = std::int64_t(from);
  for (const std::int64_t s : shares)
    if (s > 0) least = std::min(least, s);
  found.profile.least_bytes = std::max<std::int64_t>(1, least);
  // An eager message uses one rail. If messages wait for each other, splitting pays as soon as the
  // parts are worth a packet, so from smaller sizes than for a single message.
  for (rail_profile& p : found.profile.rails) {
    p.thresholds.eager_bytes = std::min(p.thresholds.eager_bytes, found.profile.least_bytes);
    p.thresholds.copy_bytes = std::min(p.thresholds.copy_bytes, p.thresholds.eager_bytes);
  }
  return found;
}

}  // namespace railpass::transport

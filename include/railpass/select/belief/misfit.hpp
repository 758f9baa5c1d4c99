// SPDX-License-Identifier: BSL-1.0
//
// How far an algorithm's corrected closed form is off: like what was measured of arms, sizes and
// ranks nearby, and the less certain the further these are away. A Gaussian process over the
// logarithms; `railpass fit` computes the weights, a prediction only adds them up. The method is
// kriging: Rasmussen, Williams: Gaussian Processes for Machine Learning, 2006, chapter 2,
// doi:10.7551/mitpress/3206.001.0001.
#pragma once

#include "collectives/registry.hpp"
#include "models/profile.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

namespace railpass::select {

namespace detail {

/// Standard deviations of ln(time / corrected closed form) far from any measurement: of what the
/// arms of an algorithm have in common, and of what is an arm's own; over how many octaves they are
/// forgotten, and how far a measurement of the very same is off. From all arms of 276 cells on nine
/// simulated machines, measured at four other sizes: errors are 0.3 to 1.4 times as large as what
/// is claimed.
inline constexpr double misfit_spread = 0.2, own_spread = 0.2, misfit_octaves = 16,
                        misfit_noise = 0.03;
/// Where messages cost their overhead alone, closed forms hardly change what they are off by: so an
/// octave of bytes counts by how much longer a message takes, and at least for so many octaves.
inline constexpr double least_size_octaves = 0.1;
/// What is an arm's own is forgotten over so many octaves of its parameters.
inline constexpr double own_octaves = 2;
/// Beyond all sizes that were measured nothing holds predictions from the other side: variance per
/// octave. Errors alone ask for less than half of it, but doubt costs less than a wrong arm.
inline constexpr double beyond_variance = 0.05;
/// A thousand times: beyond that a profile is damaged.
inline constexpr double most_misfit = 7;

}  // namespace detail

/// Where an arm stands among those of its algorithm. A message has at least one byte.
inline misfit_place misfit_place_of(const arm& a, const cost_query& q) {
  const double bytes = std::max(1.0, q.bytes);
  const link_model& link = q.slowest_link();
  const double longer = link.one_way_s(bytes) / std::max(1e-12, link.one_way_s(1));
  misfit_place place;
  place.size = std::log2(std::max(1.0, longer)) + detail::least_size_octaves * std::log2(bytes);
  place.ranks = std::log2(q.num_ranks);
  place.ranks_per_node = std::log2(q.ranks_per_node);
  for (std::size_t i = 0; i < std::size_t(a.base->num_parameters()); ++i) {
    auto value = double(a.values[i]);
    const std::string_view name = a.base->parameter_list[i].name;
    if (name == segment_bytes_parameter.name) {
      if (value <= 0 || value >= bytes) continue;
      place.segments = std::log2(bytes / value);
      place.segment_bytes = std::log2(value);
      continue;
    }
    // How many blocks are not empty.
    if (name == blocks_parameter.name) value = std::min(value, bytes / q.unit_bytes);
    place.others[i] = std::log2(std::max(1.0, value));
  }
  return place;
}

namespace detail {

/// In single precision, as a new context waits for tens of thousands of them.
inline double forgotten(double octaves) { return std::exp(-float(octaves)); }

inline double octaves_of_size(const misfit_place& p, const misfit_place& q) {
  return std::abs(p.size - q.size) + std::abs(p.ranks - q.ranks) +
         std::abs(p.ranks_per_node - q.ranks_per_node);
}

inline double octaves_of_others(const misfit_place& p, const misfit_place& q) {
  double octaves = 0;
  for (std::size_t i = 0; i < p.others.size(); ++i) octaves += std::abs(p.others[i] - q.others[i]);
  return octaves;
}

}  // namespace detail

/// How much of what is an arm's own another arm has: one with other parameters little, the same one
/// at other sizes and numbers of ranks most of it.
inline double own_share(const misfit_place& p, const misfit_place& q) {
  const double parameters =
      std::abs(p.segment_bytes - q.segment_bytes) + detail::octaves_of_others(p, q);
  return detail::forgotten(detail::octaves_of_size(p, q) / detail::misfit_octaves +
                           parameters / detail::own_octaves);
}

/// Covariance of the misfits of two arms of one algorithm: not how large segments are, but how many
/// there are counts for what they have in common.
inline double misfit_covariance(const misfit_place& p, const misfit_place& q) {
  const double octaves = detail::octaves_of_size(p, q) + std::abs(p.segments - q.segments) +
                         detail::octaves_of_others(p, q);
  return detail::misfit_spread * detail::misfit_spread *
             detail::forgotten(octaves / detail::misfit_octaves) +
         detail::own_spread * detail::own_spread * own_share(p, q);
}

/// Times of one arm at the sizes around, as far as they are certain.
struct times_around {
  double below_s = 0, above_s = std::numeric_limits<double>::infinity();

  /// Hardly an arm is faster with a longer message.
  double between(double seconds) const {
    return std::clamp(seconds, std::min(below_s, above_s), std::max(below_s, above_s));
  }
};

inline times_around times_around_of(const algorithm_correction& c, const misfit_place& place) {
  constexpr double rounded = 1e-4;  // profiles keep six digits
  constexpr double deviations = 2;
  times_around result;
  for (const algorithm_correction::point& p : c.points) {
    if (p.seconds <= 0 || std::abs(p.place.ranks - place.ranks) > rounded ||
        std::abs(p.place.ranks_per_node - place.ranks_per_node) > rounded ||
        std::abs(p.place.segment_bytes - place.segment_bytes) > rounded ||
        detail::octaves_of_others(p.place, place) > rounded)
      continue;
    const double uncertain = std::exp(deviations * std::hypot(p.noise, detail::misfit_noise));
    if (p.place.size <= place.size + rounded)
      result.below_s = std::max(result.below_s, p.seconds / uncertain);
    if (p.place.size >= place.size - rounded)
      result.above_s = std::min(result.above_s, p.seconds * uncertain);
  }
  return result;
}

/// Of ln(time / corrected closed form).
struct misfit {
  double mean = 0, spread = 0;
};

/// The spread is what the point alone leaves that tells most, a little more than all of them do,
/// and more beyond all sizes that were measured.
inline misfit misfit_at(const algorithm_correction& c, const misfit_place& place) {
  constexpr double noise = detail::misfit_noise * detail::misfit_noise;
  constexpr double apart = detail::misfit_spread * detail::misfit_spread +
                           detail::own_spread * detail::own_spread + noise;
  if (c.points.empty()) return {0, std::sqrt(apart)};
  double mean = 0, explained = 0;
  double above = std::numeric_limits<double>::infinity(), below = above;  // all sizes measured
  for (const algorithm_correction::point& p : c.points) {
    const double covariance = misfit_covariance(p.place, place);
    mean += p.weight * covariance;
    if (p.own != 0) mean += p.own * own_share(p.place, place);
    explained = std::max(explained, covariance * covariance / (apart + p.noise * p.noise));
    above = std::min(above, place.size - p.place.size);
    below = std::min(below, p.place.size - place.size);
  }
  return {std::clamp(mean, -detail::most_misfit, detail::most_misfit),
          std::sqrt(apart - explained + detail::beyond_variance * std::max({0.0, above, below}))};
}

}  // namespace railpass::select

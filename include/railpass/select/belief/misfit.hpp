// SPDX-License-Identifier: BSL-1.0
//
// The error of an algorithm's corrected closed form, estimated from measured arms, sizes and ranks
// nearby; the uncertainty grows with the distance. The model is a Gaussian process over the
// logarithms. `railpass fit` computes the weights; a prediction only sums them. The method is
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

/// Standard deviations of ln(time / corrected closed form) far from any measurement: of the error
/// that an algorithm's arms share, and of an arm's own error. misfit_octaves is the correlation
/// length in octaves, misfit_noise the error of one measurement. Chosen from all arms of 276 cells
/// on nine simulated machines, measured at four other sizes: errors are 0.3 to 1.4 times the
/// claimed ones.
inline constexpr double misfit_spread = 0.2, own_spread = 0.2, misfit_octaves = 16,
                        misfit_noise = 0.03;
/// Closed forms hardly change their error where messages cost their overhead alone. An octave of
/// bytes therefore counts by the growth of a message's time, but at least this much.
inline constexpr double least_size_octaves = 0.1;
/// Correlation length of an arm's own error, in octaves of its parameters.
inline constexpr double own_octaves = 2;
/// Variance per octave beyond all measured sizes, where predictions have data on one side only.
/// Errors justify less than half of this value, but uncertainty costs less than a wrong arm.
inline constexpr double beyond_variance = 0.05;
/// A factor of a thousand: a larger misfit means that the profile is corrupt.
inline constexpr double most_misfit = 7;

}  // namespace detail

/// The position of an arm among the arms of its algorithm. A message has at least one byte.
inline misfit_features misfit_features_of(const arm& a, const cost_query& q) {
  const double bytes = std::max(1.0, q.bytes);
  const link_model& link = q.slowest_link();
  const double longer = link.one_way_s(bytes) / std::max(1e-12, link.one_way_s(1));
  misfit_features features;
  features.size = std::log2(std::max(1.0, longer)) + detail::least_size_octaves * std::log2(bytes);
  features.ranks = std::log2(q.num_ranks);
  features.ranks_per_node = std::log2(q.ranks_per_node);
  for (std::size_t i = 0; i < std::size_t(a.base->num_parameters()); ++i) {
    auto value = double(a.values[i]);
    const std::string_view name = a.base->parameter_list[i].name;
    if (name == segment_bytes_parameter.name) {
      if (value <= 0 || value >= bytes) continue;
      features.segments = std::log2(bytes / value);
      features.segment_bytes = std::log2(value);
      continue;
    }
    // The number of non-empty blocks.
    if (name == blocks_parameter.name) value = std::min(value, bytes / q.unit_bytes);
    features.others[i] = std::log2(std::max(1.0, value));
  }
  return features;
}

namespace detail {

/// In single precision, because a new context computes tens of thousands of them.
inline double forgotten(double octaves) { return std::exp(-float(octaves)); }

inline double octaves_of_size(const misfit_features& p, const misfit_features& q) {
  return std::abs(p.size - q.size) + std::abs(p.ranks - q.ranks) +
         std::abs(p.ranks_per_node - q.ranks_per_node);
}

inline double octaves_of_others(const misfit_features& p, const misfit_features& q) {
  double octaves = 0;
  for (std::size_t i = 0; i < p.others.size(); ++i) octaves += std::abs(p.others[i] - q.others[i]);
  return octaves;
}

}  // namespace detail

/// The correlation of the own errors of two arms: low for other parameters, high for the same arm
/// at other sizes and numbers of ranks.
inline double own_share(const misfit_features& p, const misfit_features& q) {
  const double parameters =
      std::abs(p.segment_bytes - q.segment_bytes) + detail::octaves_of_others(p, q);
  return detail::forgotten(detail::octaves_of_size(p, q) / detail::misfit_octaves +
                           parameters / detail::own_octaves);
}

/// Covariance of the misfits of two arms of one algorithm. The shared part depends on the number of
/// segments, not on their size.
inline double misfit_covariance(const misfit_features& p, const misfit_features& q) {
  const double octaves = detail::octaves_of_size(p, q) + std::abs(p.segments - q.segments) +
                         detail::octaves_of_others(p, q);
  return detail::misfit_spread * detail::misfit_spread *
             detail::forgotten(octaves / detail::misfit_octaves) +
         detail::own_spread * detail::own_spread * own_share(p, q);
}

/// Times of one arm at the neighbouring sizes, as far as they are certain.
struct times_around {
  double below_s = 0, above_s = std::numeric_limits<double>::infinity();

  /// Hardly any arm is faster with a longer message.
  double between(double seconds) const {
    return std::clamp(seconds, std::min(below_s, above_s), std::max(below_s, above_s));
  }
};

inline times_around times_around_of(const algorithm_correction& c,
                                    const misfit_features& features) {
  constexpr double rounded = 1e-4;  // profiles keep six digits
  constexpr double deviations = 2;
  times_around result;
  for (const algorithm_correction::point& p : c.points) {
    if (p.seconds <= 0 || std::abs(p.features.ranks - features.ranks) > rounded ||
        std::abs(p.features.ranks_per_node - features.ranks_per_node) > rounded ||
        std::abs(p.features.segment_bytes - features.segment_bytes) > rounded ||
        detail::octaves_of_others(p.features, features) > rounded)
      continue;
    const double uncertain = std::exp(deviations * std::hypot(p.noise, detail::misfit_noise));
    if (p.features.size <= features.size + rounded)
      result.below_s = std::max(result.below_s, p.seconds / uncertain);
    if (p.features.size >= features.size - rounded)
      result.above_s = std::min(result.above_s, p.seconds * uncertain);
  }
  return result;
}

/// Of ln(time / corrected closed form).
struct misfit {
  double mean = 0, spread = 0;
};

/// The spread is that of the single most informative point, which is a little more than that of all
/// points. It grows beyond all measured sizes.
inline misfit misfit_at(const algorithm_correction& c, const misfit_features& features) {
  constexpr double noise = detail::misfit_noise * detail::misfit_noise;
  constexpr double apart = detail::misfit_spread * detail::misfit_spread +
                           detail::own_spread * detail::own_spread + noise;
  if (c.points.empty()) return {0, std::sqrt(apart)};
  double mean = 0, explained = 0;
  double above = std::numeric_limits<double>::infinity(), below = above;  // all sizes measured
  for (const algorithm_correction::point& p : c.points) {
    const double covariance = misfit_covariance(p.features, features);
    mean += p.weight * covariance;
    if (p.own != 0) mean += p.own * own_share(p.features, features);
    explained = std::max(explained, covariance * covariance / (apart + p.noise * p.noise));
    above = std::min(above, features.size - p.features.size);
    below = std::min(below, p.features.size - features.size);
  }
  return {std::clamp(mean, -detail::most_misfit, detail::most_misfit),
          std::sqrt(apart - explained + detail::beyond_variance * std::max({0.0, above, below}))};
}

}  // namespace railpass::select

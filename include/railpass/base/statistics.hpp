// SPDX-License-Identifier: BSL-1.0
//
// Robust statistics of measured times. Everything here throws error for an empty sample; values
// must be finite.
#pragma once

#include "railpass/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <vector>

namespace railpass {

namespace detail {

// The quantile of a sample that may be reordered.
inline double quantile_in_place(std::span<double> sample, double q) {
  if (sample.empty()) throw error("statistics: expected at least one value, got an empty sample");
  if (!(q >= 0 && q <= 1)) throw error("statistics: expected a quantile between 0 and 1");
  const double position = q * double(sample.size() - 1);
  const auto below = sample.begin() + std::ptrdiff_t(position);
  std::nth_element(sample.begin(), below, sample.end());
  const double low = *below, fraction = position - std::floor(position);
  if (fraction == 0) return low;
  const double high = *std::min_element(below + 1, sample.end());
  return low + fraction * (high - low);
}

}  // namespace detail

/// The value below which a fraction q of the sample lies, linear between neighbours (Hyndman and
/// Fan's type 7, doi:10.1080/00031305.1996.10473566).
inline double quantile(std::span<const double> sample, double q) {
  std::vector<double> copy(sample.begin(), sample.end());
  return detail::quantile_in_place(copy, q);
}

inline double mean(std::span<const double> sample) {
  if (sample.empty()) throw error("statistics: expected at least one value, got an empty sample");
  return std::accumulate(sample.begin(), sample.end(), 0.0) / double(sample.size());
}

inline double median(std::span<const double> sample) { return quantile(sample, 0.5); }

/// Median of the absolute distances from the median.
inline double median_absolute_deviation(std::span<const double> sample) {
  const double middle = median(sample);
  std::vector<double> distances;
  distances.reserve(sample.size());
  for (const double x : sample) distances.push_back(std::abs(x - middle));
  return detail::quantile_in_place(distances, 0.5);
}

/// The standard deviation a normal sample with this median absolute deviation would have.
inline double robust_spread(std::span<const double> sample) {
  return 1.4826 * median_absolute_deviation(sample);
}

/// The values within `spreads` robust spreads of the median, in their order. Where more than half
/// of the sample is one value (a coarse clock), the spread is taken as 1 % of the median instead of
/// nothing. Never empty for a sample that is not.
inline std::vector<double> without_outliers(std::span<const double> sample, double spreads = 5) {
  const double middle = median(sample);
  const double reach = spreads * std::max(robust_spread(sample), 0.01 * std::abs(middle));
  std::vector<double> kept;
  for (const double x : sample)
    if (std::abs(x - middle) <= reach) kept.push_back(x);
  if (kept.empty()) kept.push_back(middle);  // two clusters, the median in the gap between them
  return kept;
}

struct interval {
  double low = 0;
  double high = 0;
};

/// A confidence interval for the median of what the sample was drawn from, that holds whatever the
/// distribution is: between two of the values, by the sign test.
struct median_bounds {
  interval bounds{};
  double confidence = 0;  ///< of the bounds
};

/// The narrowest symmetric one of at least that confidence; from fewer values than that needs (6
/// for 0.95), from the least to the largest one.
inline median_bounds bounds_of_median(std::span<const double> sample, double confidence = 0.95) {
  if (sample.empty()) throw error("statistics: expected at least one value, got an empty sample");
  std::vector<double> sorted(sample.begin(), sample.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t n = sorted.size();
  // The k least values are left out on either side. The median is below all but k of n values with
  // the probability that at most k of n coins show heads.
  double log_term = double(n) * std::log(0.5), tail = std::exp(log_term);
  std::size_t left_out = 0;
  while (2 * (left_out + 1) < n) {
    log_term += std::log(double(n - left_out) / double(left_out + 1));
    if (1 - 2 * (tail + std::exp(log_term)) < confidence) break;
    tail += std::exp(log_term);
    ++left_out;
  }
  return {{sorted[left_out], sorted[n - 1 - left_out]}, 1 - 2 * tail};
}

struct paired_ratio {
  double ratio = 1;
  interval bounds{};  ///< with 95 % confidence, by the normal distribution
};

/// Geometric mean of numerator[i] / denominator[i], which were measured one after the other, so
/// that what disturbs the machine for longer than that cancels. One pair has no bounds but itself.
inline paired_ratio ratio_of_pairs(std::span<const double> numerator,
                                   std::span<const double> denominator) {
  const std::size_t n = numerator.size();
  if (n == 0 || n != denominator.size())
    throw error("statistics: expected as many values above as below, at least one");
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double y = std::log(numerator[i] / denominator[i]);
    sum += y;
    squares += y * y;
  }
  const double mean = sum / double(n);
  const double variance = n < 2 ? 0 : std::max(0.0, squares - sum * mean) / double(n - 1);
  const double reach = 1.96 * std::sqrt(variance / double(n));
  return {std::exp(mean), {std::exp(mean - reach), std::exp(mean + reach)}};
}

/// Percentile bootstrap interval (Efron, doi:10.1214/aos/1176344552) of
/// median(numerator) / median(denominator), both samples drawn again independently. The same seed
/// gives the same interval.
inline interval ratio_of_medians(std::span<const double> numerator,
                                 std::span<const double> denominator, double confidence = 0.95,
                                 int resamples = 1000, std::uint64_t seed = 1) {
  if (!(confidence > 0 && confidence < 1))
    throw error("statistics: expected a confidence between 0 and 1");
  if (resamples < 1) throw error("statistics: expected at least one resample");
  if (numerator.empty() || denominator.empty())
    throw error("statistics: expected at least one value, got an empty sample");
  std::mt19937_64 random(seed);
  std::vector<double> drawn, ratios;
  ratios.reserve(std::size_t(resamples));
  const auto resampled_median = [&](std::span<const double> sample) {
    drawn.resize(sample.size());
    for (double& x : drawn) x = sample[random() % sample.size()];
    return detail::quantile_in_place(drawn, 0.5);
  };
  for (int i = 0; i < resamples; ++i) {
    const double above = resampled_median(numerator);
    ratios.push_back(above / resampled_median(denominator));
  }
  const double tail = (1 - confidence) / 2;
  const double low = detail::quantile_in_place(ratios, tail);
  return {low, detail::quantile_in_place(ratios, 1 - tail)};
}

}  // namespace railpass

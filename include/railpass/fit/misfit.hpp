// SPDX-License-Identifier: BSL-1.0
//
// Splits the residuals of fitted closed forms into measurement error and a part that similar arms
// share (railpass/select/belief/misfit.hpp). Times of few runs have less weight, and hardly any if
// they seem to be slow runs. The fit itself is in collectives.hpp.
#pragma once

#include "models/profile.hpp"
#include "railpass/select/belief/misfit.hpp"

#include <Eigen/Dense>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <vector>

namespace railpass::detail {

// The error of a measured time. A run is sometimes a hundred times too slow, if ranks wait for a
// core: Student's t with one degree of freedom. The median of n such values has the tails of (n +
// 1) / 2 degrees.
struct time_error {
  double variance = 0;  // of ln(seconds) without rare slow runs; 0: exact, as far as known
  double freedom = 1;

  // The variance of this time, given the expected squared error `squared` (Lange, Little, Taylor,
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

// Returns the weights that make a Gaussian process of the residuals. At first the whole residual
// counts as error of the time, if the time has an error; the iteration then moves the part that
// other residuals explain.
//
// A residual more than four standard deviations from the value that the other residuals predict,
// the worst first, is specific to its arm. It is noise if its measurement error is unknown and the
// time is too long, because nothing makes a call too short. A well-measured residual that still
// deviates is accepted: closed forms have jumps.
inline std::vector<algorithm_correction::point> weigh(std::span<const misfit_features> features,
                                                      std::span<const double> residuals,
                                                      std::span<const time_error> errors) {
  constexpr double most_deviations = 4, settled = 0.01;
  constexpr int most_rounds = 100;
  const auto n = Eigen::Index(features.size());
  Eigen::MatrixXd covariance(n, n);
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index k = 0; k < n; ++k)
      covariance(i, k) =
          select::misfit_covariance(features[std::size_t(i)], features[std::size_t(k)]);
  covariance.diagonal().array() += select::detail::misfit_noise * select::detail::misfit_noise;
  const Eigen::Map<const Eigen::VectorXd> r(residuals.data(), n);
  Eigen::VectorXd weights, noise(n);
  Eigen::VectorXd disbelieved = Eigen::VectorXd::Zero(n), own = disbelieved;  // variances
  Eigen::VectorXd in_question = Eigen::VectorXd::Ones(n);
  const auto shares_of = [&](Eigen::Index i) {
    Eigen::VectorXd shares(n);
    for (Eigen::Index k = 0; k < n; ++k)
      shares(k) = select::own_share(features[std::size_t(i)], features[std::size_t(k)]);
    return shares;
  };
  for (Eigen::Index i = 0; i < n; ++i)
    noise(i) = errors[std::size_t(i)].variance_given(r(i) * r(i));
  covariance.diagonal() += noise;
  for (Eigen::Index round = 0; round <= most_rounds + n; ++round) {
    const Eigen::MatrixXd inverse = covariance.inverse();
    weights = inverse * r;
    // Expected squared errors.
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
    // Deviation of each residual from its prediction by the other residuals: the difference is
    // weight / inverse(i, i), with variance 1 / inverse(i, i).
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
    result.push_back({.features = features[std::size_t(i)],
                      .weight = weights(i),
                      .noise = std::sqrt(noise(i) + disbelieved(i)),
                      .own = own(i) > 0 ? own(i) * shares_of(i).dot(weights) : 0});
  return result;
}

}  // namespace railpass::detail

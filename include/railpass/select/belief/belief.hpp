// SPDX-License-Identifier: BSL-1.0
//
// The belief of a context about the times of its arms: a Gaussian over the logarithms of their mean
// times. Errors are shared by the arms of one algorithm, and by all arms: a machine that is twice
// as slow as predicted changes no decision. Policies decide what to do with the belief.
//
// Correlated beliefs: Ryzhov, Powell, Frazier: The knowledge gradient algorithm for a general class
// of online learning problems, Operations Research 60(1), 2012, doi:10.1287/opre.1110.0999. Change
// detection by cumulated sums: Page: Continuous inspection schemes, Biometrika 41, 1954,
// doi:10.1093/biomet/41.1-2.100.
#pragma once

#include "railpass/select/policy/policy.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace railpass::select {

/// A symmetric matrix of the arms' covariances, row by row.
class covariance {
 public:
  covariance() = default;
  explicit covariance(int size) : size_(size), values_(std::size_t(size) * std::size_t(size)) {}

  int size() const { return size_; }
  double& operator()(int i, int j) {
    return values_[std::size_t(i) * std::size_t(size_) + std::size_t(j)];
  }
  double operator()(int i, int j) const {
    return values_[std::size_t(i) * std::size_t(size_) + std::size_t(j)];
  }
  /// Variance of the difference of two arms.
  double of_difference(int i, int j) const {
    return std::max(0.0, (*this)(i, i) + (*this)(j, j) - 2 * (*this)(i, j));
  }
  /// Adds factor * c c', where c is the current column of arm `a`.
  void add_column_square(int a, double factor) {
    if (factor == 0) return;
    column_.resize(std::size_t(size_));
    for (int i = 0; i < size_; ++i) column_[std::size_t(i)] = (*this)(i, a);
    for (int i = 0; i < size_; ++i) {
      const double scaled = factor * column_[std::size_t(i)];
      for (int j = 0; j < size_; ++j) (*this)(i, j) += scaled * column_[std::size_t(j)];
    }
  }
  /// Conditions the covariances on an observation of arm `a` with this variance.
  void observe(int a, double variance) { add_column_square(a, -1 / ((*this)(a, a) + variance)); }

 private:
  int size_ = 0;
  std::vector<double> values_;
  std::vector<double> column_;
};

class belief {
 public:
  /// The lowest variance of an arm's mean: samples of one arm have correlated noise.
  static constexpr double separation_variance = 0.01 * 0.01;
  /// Predictions with less spread come from times of the algorithm at similar sizes and parameters.
  static constexpr double measured_spread = 0.3;
  /// An arm without a prediction is estimated slower by this (in the logarithm) than the best
  /// predicted arm.
  static constexpr double unpredicted_lag = 0.35;
  /// Contexts with shorter calls synchronise rarely, so a wrong estimate would stay.
  static constexpr double short_call_s = 20e-6;

  explicit belief(std::span<const arm_prior> arms);

  int size() const { return int(arms_.size()); }
  /// Mean of ln(seconds).
  double mean(int a) const { return mean_[std::size_t(a)]; }
  const covariance& covariances() const { return cov_; }
  double variance(int a) const { return cov_(a, a); }
  /// ln of the cost of a call: the mean of its logarithm and what slow calls add.
  double cost(int a) const { return mean(a) + arms_[std::size_t(a)].tail; }
  /// Variance of ln(seconds) from call to call.
  double noise_variance() const { return noise_variance_; }
  /// Samples applied so far.
  std::int64_t samples(int a) const { return arms_[std::size_t(a)].samples; }
  /// ln(seconds) of the arm's only sample, if that sample was too slow to be believed.
  std::optional<double> bad_first(int a) const { return arms_[std::size_t(a)].bad_first; }
  /// Standard deviation of the arms' own errors before any sample.
  double prior_spread() const { return prior_spread_; }
  /// Whether the last epoch showed a change of the incumbent.
  bool changed() const { return changed_; }
  /// The arm in use, if the last epoch showed that it has become slower.
  std::optional<int> slowed() const { return slowed_; }

  /// The cheapest arm in expectation.
  int cheapest() const {
    int best = 0;
    for (int a = 1; a < size(); ++a)
      if (expected(a) < expected(best)) best = a;
    return best;
  }
  /// ln of the expected cost of a call.
  double expected(int a) const { return cost(a) + variance(a) / 2; }
  /// How many standard deviations arm `a` is cheaper than arm `b`.
  double lead(int a, int b) const {
    const double spread = std::sqrt(covariances().of_difference(a, b) + 1e-12);
    return (cost(b) - cost(a)) / spread;
  }

  /// Learns from the latest synchronisation.
  /// @param incumbent the arm in use
  void learn(const arm_book& book, int incumbent);

  /// Replaces arm `a` by another arm, of which only a prediction is known.
  void replace(int a, const arm_prior& by);

 private:
  static constexpr int few = 8;  // samples, for detecting a change of an arm
  static constexpr double least_noise = 0.02, first_noise = 0.25;
  // Of arms without a prediction.
  static constexpr double unpredicted_spread = 0.5, unknown_level = -9;
  // The share of arms that are nothing like their prediction, the share of outliers among samples,
  // and the density of either at any point.
  static constexpr double trap_share = 0.05, outlier_share = 0.03, anywhere = 0.25;
  // The shared part of an arm's own error, within its algorithm.
  static constexpr double in_common = 0.79;
  // The common error of all predictions (in the logarithm) is usually small, but arbitrary in some
  // contexts. Native's prediction is hardly ever completely wrong.
  static constexpr int most_level = 20;  // steps
  static constexpr double level_step = 0.25, usual_level = 0.4, any_level = 3, any_share = 0.3,
                          odd_native = 0.0003;
  // Predictions are far too slow if the probability of a level below far_level exceeds far_share.
  static constexpr double far_level = -1, far_share = 0.2;
  // Variance of the common offset, per call.
  static constexpr double drift_variance = 0.005 * 0.005;

  struct arm_state {
    int number = 0;  // arm_prior::arm
    int family = 0;
    bool native = false;
    double own_spread = 0;
    double predicted = 0;  // ln(seconds)
    std::int64_t samples = 0;
    double tail = 0;  // what slow calls add to the logarithm of its cost
    std::optional<double> bad_first{};
    bool doubted = false;  // the last sample looked like an outlier
  };
  // Samples of one arm in one epoch; times are logarithms.
  struct summary {
    int arm = 0;
    int kept = 0;
    double mean = 0;
    double most = 0;  // of all samples
    double squares = 0;
    int outliers = 0;  // slower than those
    int total() const { return kept + outliers; }
  };

  /// The correlation of errors within an algorithm, from 0 to 1. Predictions interpolated from
  /// times of the algorithm at similar sizes already contain the common part: on nine simulated
  /// machines their errors were almost independent, even for the next segment size.
  static double shared_part(const arm_state& a) {
    constexpr double interpolated = 0.2, of_a_model = 0.35;  // spreads
    return std::clamp((a.own_spread - interpolated) / (of_a_model - interpolated), 0.0, 1.0);
  }
  /// Samples further from their arm than this (in the logarithm) are outliers.
  double noise_limit() const { return 3 * std::sqrt(noise_variance_); }
  static double normal_density(double x, double variance) {
    return std::exp(-0.5 * x * x / variance) / std::sqrt(2 * std::numbers::pi * variance);
  }
  std::vector<summary> summarise(const arm_book& book) const;
  void spread_out(double common, double own);
  void watch(const summary& s);
  void begin_anew(const summary& seen);
  void apply(const summary& s);
  void keep_to_samples(const arm_book& book);
  void take_level(std::span<const summary> epoch);
  bool weigh_levels(std::span<const summary> epoch);
  void correct_level();

  std::vector<arm_state> arms_;
  std::vector<double> mean_;
  covariance cov_;
  double most_ = -std::numeric_limits<double>::infinity();  // of all samples
  bool knows_level_ = true, has_predictions_ = true;
  std::array<double, 2 * most_level + 1> level_fits_{};  // ln of the likelihood of first samples
  double level_ = 0;                                     // correction of the predictions, if any
  double prior_spread_ = 0.35;
  double noise_variance_ = first_noise * first_noise;
  double noise_weight_ = 5;
  double above_ = 0, below_ = 0;  // cumulated sums of the incumbent's surprises
  std::int64_t epochs_ = 0, last_change_ = 0;
  bool changed_ = false;
  std::optional<int> slowed_{};
};

inline belief::belief(std::span<const arm_prior> arms) : cov_(int(arms.size())) {
  double best = 0, squares = 0;
  int predicted = 0;
  for (const arm_prior& p : arms) {
    arms_.push_back(
        {.number = p.arm, .family = p.family, .native = p.native, .own_spread = p.spread});
    if (p.measured_only) continue;
    best = predicted == 0 ? p.log_seconds : std::min(best, p.log_seconds);
    ++predicted;
    squares += p.spread * p.spread;
  }
  if (predicted > 0) prior_spread_ = std::sqrt(squares / predicted);
  has_predictions_ = knows_level_ = predicted > 0;
  if (!knows_level_) prior_spread_ = unpredicted_spread;
  // All predictions share an error, if the machine is busy or the constants are another machine's.
  const double common_spread = std::max(0.4, 1.5 * prior_spread_);

  // An arm without a prediction is very uncertain. Without any prediction, the first
  // synchronisation gives the level of all arms.
  const double unknown = knows_level_ ? best + unpredicted_lag : unknown_level;
  const double unknown_spread = knows_level_ ? 0.8 : unpredicted_spread;
  const int k = size();
  for (int i = 0; i < k; ++i) {
    const arm_prior& p = arms[std::size_t(i)];
    arm_state& a = arms_[std::size_t(i)];
    if (p.measured_only) a.own_spread = unknown_spread;
    a.predicted = p.measured_only ? unknown + p.lag : p.log_seconds;
    mean_.push_back(a.predicted);
    for (int j = 0; j < k; ++j) {
      const arm_state& b = arms_[std::size_t(j)];
      double c = common_spread * common_spread;
      if (a.family == b.family)
        c += in_common * a.own_spread * b.own_spread * std::sqrt(shared_part(a) * shared_part(b));
      if (i == j) c += a.own_spread * a.own_spread * (1 - in_common * shared_part(a));
      cov_(i, j) = c;
    }
  }
}

inline void belief::replace(int a, const arm_prior& by) {
  arms_[std::size_t(a)] = {.number = by.arm,
                           .family = by.family,
                           .native = by.native,
                           .own_spread = by.spread,
                           .predicted = by.log_seconds};
  mean_[std::size_t(a)] = by.log_seconds;
  for (int j = 0; j < size(); ++j) cov_(a, j) = cov_(j, a) = 0;
  cov_(a, a) = by.spread * by.spread;
}

inline std::vector<belief::summary> belief::summarise(const arm_book& book) const {
  const double limit = noise_limit();
  std::vector<summary> result;
  for (int a = 0; a < size(); ++a) {
    const arm_times* const times = book.find_latest(arms_[std::size_t(a)].number);
    if (!times) continue;
    std::vector<double> values;
    for (const double seconds : times->all_s) values.push_back(std::log(seconds));
    std::sort(values.begin(), values.end());
    // The first calls of an arm may open connections, and no call is faster than the arm's time.
    const double middle =
        arms_[std::size_t(a)].samples == 0 ? values.front() : values[(values.size() - 1) / 2];
    summary s{.arm = a, .most = values.back()};
    for (const double y : values)
      if (std::abs(y - middle) <= limit) {
        s.mean += y;
        ++s.kept;
      }
    s.mean /= s.kept;
    for (const double y : values) {
      if (std::abs(y - middle) <= limit) {
        s.squares += (y - s.mean) * (y - s.mean);
      } else if (y > middle) {
        ++s.outliers;
      }
    }
    result.push_back(s);
  }
  return result;
}

/// Adds these variances for the time that has passed.
inline void belief::spread_out(double common, double own) {
  for (int i = 0; i < size(); ++i) {
    for (int j = 0; j < size(); ++j) cov_(i, j) += common;
    cov_(i, i) += own;
  }
}

/// Detects a change in the incumbent's times.
inline void belief::watch(const summary& s) {
  const double surprise = s.mean - mean(s.arm);
  const double of_samples = noise_variance_ / s.kept;
  const auto deviations = [&](double variance) {
    return surprise / std::sqrt(variance + separation_variance);
  };
  constexpr double allowance = 0.75, enough = 4;  // standard deviations
  above_ = std::max(0.0, above_ + deviations(variance(s.arm) + of_samples) - allowance);
  // Slower calls may be drift; faster calls show better times, and not of this arm alone.
  below_ = std::max(0.0, below_ - deviations(2 * of_samples) - allowance);
  changed_ = (above_ > enough || below_ > enough) && epochs_ - last_change_ >= 2;
}

/// Starts anew after a change seen in `seen`, of all arms or of this arm alone. The variances grow,
/// so that the next best arm is tried again.
inline void belief::begin_anew(const summary& seen) {
  constexpr double common = 0.30 * 0.30, own = 0.35 * 0.35;
  if (seen.mean > mean(seen.arm)) slowed_ = seen.arm;
  spread_out(common, own);
  last_change_ = epochs_;
  above_ = below_ = 0;
}

inline void belief::apply(const summary& s) {
  arm_state& a = arms_[std::size_t(s.arm)];
  const bool first = a.samples == 0;
  a.bad_first.reset();
  const double v = noise_variance_ / s.kept + separation_variance;
  a.samples += s.total();
  double variance = cov_(s.arm, s.arm) + v;
  const double r = s.mean - mean(s.arm);
  // A mixture of the belief's expectation and an outlier. An outlier is never faster than the arm,
  // and several samples that agree are no outliers.
  const double fits = normal_density(r, variance) + (first ? trap_share * anywhere : 0);
  const double outlier = r > 0 && s.total() <= 2 && !a.doubted ? outlier_share : 0;
  const double total = (1 - outlier) * fits + outlier * anywhere;
  const double w = total > 0 ? (1 - outlier) * fits / total : 1;
  a.doubted = w < 0.5;
  // An unexpected sample is specific to the arm: it says little about the arm's algorithm.
  if (const double own = r * r / 9 - variance; own > 0 && w > 0.5) {
    cov_(s.arm, s.arm) += own;
    variance += own;
  }
  for (int i = 0; i < size(); ++i) mean_[std::size_t(i)] += w * cov_(i, s.arm) * r / variance;
  cov_.add_column_square(s.arm, -w / variance + w * (1 - w) * r * r / (variance * variance));
}

/// Limits an arm's mean to near its last samples, or, with few samples, to near all samples and
/// predictions seen so far. Samples of other arms cannot move the mean further.
inline void belief::keep_to_samples(const arm_book& book) {
  constexpr double twice = std::numbers::ln2;
  for (int i = 0; i < size(); ++i) {
    const arm_state& a = arms_[std::size_t(i)];
    double least = -std::numeric_limits<double>::infinity(), most = std::max(most_, a.predicted);
    if (const arm_times* const times = book.find(a.number); times && times->has_few()) {
      const auto [quickest_s, slowest_s] = std::ranges::minmax(times->latest_few_s());
      least = std::log(quickest_s), most = std::log(slowest_s);
    }
    // The limit is for the expected cost, which tail and variance increase.
    const double beyond = a.tail + cov_(i, i) / 2;
    double& mean = mean_[std::size_t(i)];
    mean = std::max(std::min(mean, most + twice - beyond), least - twice);
  }
}

/// Sets the level without predictions: the fastest arm of the first synchronisation decides.
inline void belief::take_level(std::span<const summary> epoch) {
  const double level = std::ranges::min_element(epoch, {}, &summary::mean)->mean - unknown_level;
  for (int i = 0; i < size(); ++i) arms_[std::size_t(i)].predicted = mean_[std::size_t(i)] += level;
}

/// Updates how well each level explains the first samples of arms; false without such samples.
inline bool belief::weigh_levels(std::span<const summary> epoch) {
  bool any = false;
  for (const summary& s : epoch) {
    const arm_state& a = arms_[std::size_t(s.arm)];
    if (a.samples > 0 || a.doubted) continue;
    any = true;
    const double v = a.own_spread * a.own_spread + noise_variance_ / s.kept;
    const double error = s.mean - (a.predicted - level_);
    for (int k = -most_level; k <= most_level; ++k)
      level_fits_[std::size_t(k + most_level)] +=
          std::log(normal_density(error - level_step * k, v) +
                   (a.native ? odd_native : trap_share * anywhere));
  }
  return any;
}

/// Corrects the level of the arms without samples. Predictions that are all far too slow would hide
/// every arm behind the arm in use, without any sample to reveal the error. Predictions that are
/// far too fast correct themselves, because their arms are tried.
inline void belief::correct_level() {
  const double best = *std::ranges::max_element(level_fits_);
  double all = 0, sum = 0, squares = 0, far = 0;
  for (int k = -most_level; k <= most_level; ++k) {
    const double level = level_step * k;
    const double share = std::exp(level_fits_[std::size_t(k + most_level)] - best) *
                         ((1 - any_share) * normal_density(level, usual_level * usual_level) +
                          any_share * normal_density(level, any_level * any_level));
    all += share;
    sum += share * level;
    squares += share * level * level;
    if (level < far_level) far += share;
  }
  const bool was_corrected = level_ != 0;
  if (far <= far_share * all && !was_corrected) return;
  const double level = sum / all, v = std::max(0.0, squares / all - level * level);
  for (int i = 0; i < size(); ++i) {
    if (arms_[std::size_t(i)].samples > 0) continue;
    mean_[std::size_t(i)] += level - level_;
    arms_[std::size_t(i)].predicted += level - level_;
    for (int j = 0; j < size() && !was_corrected; ++j)
      if (arms_[std::size_t(j)].samples == 0) cov_(i, j) += v;
  }
  level_ = level;
}

inline void belief::learn(const arm_book& book, int incumbent) {
  const std::int64_t elapsed = std::max<std::int64_t>(0, book.calls() - book.calls_before());
  const std::vector<summary> epoch = summarise(book);
  changed_ = false;
  slowed_.reset();
  if (epoch.empty()) return;
  if (!std::exchange(knows_level_, true)) take_level(epoch);
  if (has_predictions_ && weigh_levels(epoch)) correct_level();
  for (const summary& s : epoch) most_ = std::max(most_, s.most);
  ++epochs_;

  double squares = 0, freedom = 0;
  for (const summary& s : epoch)
    if (s.kept >= 3) {
      squares += s.squares;
      freedom += s.kept - 1;
    }
  const auto refine_noise = [&](double sum, double weight) {
    noise_variance_ = std::max((noise_weight_ * noise_variance_ + sum) / (noise_weight_ + weight),
                               least_noise * least_noise);
    noise_weight_ = std::min(200.0, noise_weight_ + weight);
  };
  if (freedom > 0) refine_noise(squares, freedom);
  for (arm_state& a : arms_) a.tail = std::log1p(book.tail(a.number));

  // Applies the common offset first: arms in order of their distance from the typical residual.
  std::vector<std::pair<double, int>> residuals;
  int weights = 0;
  for (const summary& s : epoch) {
    residuals.emplace_back(s.mean - mean(s.arm), std::min(s.kept, 4));
    weights += std::min(s.kept, 4);
  }
  std::sort(residuals.begin(), residuals.end());
  double typical = 0;
  for (int seen = 0; const auto& [residual, weight] : residuals) {
    seen += weight;
    typical = residual;
    if (2 * seen >= weights) break;
  }
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < epoch.size(); ++i)
    order.emplace_back(std::abs(epoch[i].mean - mean(epoch[i].arm) - typical), i);
  std::sort(order.begin(), order.end());

  spread_out(drift_variance * double(elapsed), 0.02 * 0.02 / 1000 * double(elapsed));
  // The arm with the most samples may not be today's incumbent, because plans are made an epoch
  // ahead.
  const auto most_seen =
      std::max_element(epoch.begin(), epoch.end(),
                       [](const summary& a, const summary& b) { return a.total() < b.total(); });
  if (most_seen->kept >= 2 && arms_[std::size_t(most_seen->arm)].samples > few) watch(*most_seen);
  if (changed_) begin_anew(*most_seen);

  for (const auto& [distance, i] : order) {
    const summary& s = epoch[i];
    arm_state& a = arms_[std::size_t(s.arm)];
    if (a.samples == 0 && s.total() == 1 && !a.doubted && s.arm != incumbent && !a.native) {
      // A slow first sample is an upper bound, not a value: the arm gets a second chance.
      const double difference = covariances().of_difference(s.arm, incumbent);
      const double surprise = s.mean - mean(s.arm);
      if (surprise >
          2.5 * std::sqrt(std::min(difference, prior_spread_ * prior_spread_) + noise_variance_)) {
        a.doubted = true;
        a.bad_first = s.mean;
        continue;
      }
    }
    const bool doubted_before = a.doubted;
    apply(s);
    if (s.kept < 3 && a.samples > 2 + s.total() && !doubted_before) {
      const double r = s.mean - mean(s.arm);
      refine_noise(0.5 * std::min(r * r, 9 * noise_variance_ / s.kept) * s.kept, 0.5);
    }
  }

  keep_to_samples(book);
}

}  // namespace railpass::select

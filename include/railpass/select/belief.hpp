// SPDX-License-Identifier: BSL-1.0
//
// What a context believes about the times of its arms: a Gaussian over the logarithms of their mean
// times in which arms of one algorithm err together, neighbouring segment sizes more so, and all
// arms together (a machine that is twice as slow as predicted changes no decision). Four such
// beliefs, which trust the prior to different degrees, are kept side by side; the one that explains
// the measurements best speaks. What was believed before times changed is kept, and taken up again
// if that explains the next change.
//
// Correlated beliefs: Ryzhov, Powell, Frazier: The knowledge gradient algorithm for a general class
// of online learning problems, Operations Research 60(1), 2012, doi:10.1287/opre.1110.0999.
// Change detection by cumulated sums: Page: Continuous inspection schemes, Biometrika 41, 1954,
// doi:10.1093/biomet/41.1-2.100.
#pragma once

#include "railpass/select/policy.hpp"

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
  /// Adds factor * c c', where c is the column of arm `a` as it is now.
  void add_column_square(int a, double factor) {
    if (factor == 0) return;
    column_.resize(std::size_t(size_));
    for (int i = 0; i < size_; ++i) column_[std::size_t(i)] = (*this)(i, a);
    for (int i = 0; i < size_; ++i) {
      const double scaled = factor * column_[std::size_t(i)];
      for (int j = 0; j < size_; ++j) (*this)(i, j) += scaled * column_[std::size_t(j)];
    }
  }
  /// What is left after arm `a` was observed with this variance.
  void observe(int a, double variance) { add_column_square(a, -1 / ((*this)(a, a) + variance)); }

 private:
  int size_ = 0;
  std::vector<double> values_;
  std::vector<double> column_;
};

class belief {
 public:
  /// Samples of one arm never tell its mean better than this (their noise is not independent).
  static constexpr double separation_variance = 0.01 * 0.01;
  /// Predictions with less spread come from times of the algorithm at similar sizes and parameters.
  static constexpr double measured_spread = 0.3;
  /// Calls that take less merge rarely, so a wrong guess would stay.
  static constexpr double short_call_s = 20e-6;

  explicit belief(std::span<const arm_prior> arms);

  int size() const { return int(arms_.size()); }
  /// Mean of ln(seconds) and its covariances.
  double mean(int a) const { return current().mean[std::size_t(a)]; }
  const covariance& covariances() const { return current().cov; }
  double variance(int a) const { return current().cov(a, a); }
  /// ln of the cost of a call: the mean of its logarithm and what its algorithm's tail adds.
  double cost(int a) const { return mean(a) + tail(a); }
  /// Variance of ln(seconds) from call to call.
  double noise_variance() const { return noise_variance_; }
  /// Samples applied so far.
  std::int64_t samples(int a) const { return arms_[std::size_t(a)].samples; }
  /// ln(seconds) of the arm's only sample, if that was too bad to be believed.
  std::optional<double> bad_first(int a) const { return arms_[std::size_t(a)].bad_first; }
  /// Number of the call at which the arm was last seen.
  std::int64_t last_seen(int a) const { return arms_[std::size_t(a)].last_seen; }
  /// How many times larger the prior's errors seem to be than it says.
  double scale() const { return scales[speaking_]; }
  /// Standard deviation of the arms' own errors before any sample.
  double prior_spread() const { return prior_spread_; }
  /// Whether the last epoch showed a change of the incumbent.
  bool changed() const { return changed_; }
  /// The arm in use that the last epoch showed to have become slower.
  std::optional<int> slowed() const { return changed_ ? slowed_ : std::nullopt; }

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

  /// One merged epoch: what was measured, how many calls it lasted, and which arm was the
  /// incumbent. `observation::arm` is an index here.
  void learn(std::span<const observation> merged, std::int64_t calls, std::int64_t calls_before,
             int incumbent);

  /// Arm `a` is another one from now on, of which nothing is known but this; it has a prediction.
  void replace(int a, const arm_prior& by);

 private:
  // The prior may be better than it says, or much worse. It speaks first; how much evidence it
  // takes for another scale to speak grows with the distance.
  static constexpr std::array scales{1.0, 0.6, 2.0, 4.0};
  static constexpr double log_weight_per_octave = -0.5;
  // So many arms are nothing like their prediction.
  static constexpr double trap_weight = 0.05;
  static constexpr int few = 8;  // samples, for saying that an arm has changed
  static constexpr std::int64_t lasting = 30, long_enough = 500;  // calls between changes
  static constexpr double least_noise = 0.02, largest_noise = 0.5, first_noise = 0.25;
  static constexpr double heavy_tail_weight = 0.04;
  // A first sample includes opening connections and touching pages.
  static constexpr double first_sample_variance = 0.1 * 0.1;

  struct hypothesis {
    std::vector<double> mean;
    covariance cov;
    double log_weight = 0;
  };
  struct arm_state {
    int family = 0;
    double log2_segment = 24;
    bool native = false;
    double own_spread = 0.35;
    double predicted = 0;  // ln(seconds)
    std::int64_t samples = 0;
    std::int64_t last_seen = 0;
    std::optional<double> bad_first{};
    int doubted = 0;                 // samples in a row that looked like outliers
    std::array<double, 5> latest{};  // ln(seconds) of the last samples, in a ring
    std::size_t num_latest = 0;      // so many were ever kept there
  };
  struct family_tail {
    double calls = 0, outliers = 0, excess = 0;
  };
  // What one epoch says about one arm; times are logarithms.
  struct summary {
    int arm = 0;
    int kept = 0;
    double mean = 0;
    double squares = 0;
    int outliers = 0;
    double excess = 0;
    int total() const { return kept + outliers; }
  };

  const hypothesis& current() const { return hypotheses_[speaking_]; }
  double tail(int a) const;
  /// Calls that tails_ are of.
  double remembered_calls() const {
    double calls = 0;
    for (const family_tail& t : tails_) calls += t.calls;
    return calls;
  }
  static double correlated(const arm_state& a, const arm_state& b) {
    return std::exp(-std::abs(a.log2_segment - b.log2_segment) / 2);
  }
  /// How far arms of an algorithm err together, from 0 to 1. Times of the algorithm at similar
  /// sizes have told what its arms have in common: of what such predictions were off by on nine
  /// simulated machines next to nothing was alike, not even with the next segment size.
  static double shared_part(const arm_state& a) {
    constexpr double interpolated = 0.2, of_a_model = 0.35;  // spreads
    return std::clamp((a.own_spread - interpolated) / (of_a_model - interpolated), 0.0, 1.0);
  }
  /// Samples further from their arm than this (of the logarithm) are no noise.
  double noise_limit() const { return std::max(3 * std::sqrt(noise_variance_), 0.25); }
  std::vector<summary> summarise(std::span<const observation> merged) const;
  int index_of_family(int number);
  void spread_out(double common, double family, double segment, double own);
  void watch(const summary& s, std::int64_t elapsed);
  const summary* quick_again(std::span<const summary> epoch) const;
  void begin_anew(const summary& seen, std::int64_t calls);
  void apply(const summary& s);
  void keep_to_samples();

  std::vector<arm_state> arms_;
  std::vector<int> families_;  // their numbers in the priors
  std::vector<family_tail> tails_;
  std::vector<hypothesis> hypotheses_;
  std::size_t speaking_ = 0;
  std::vector<hypothesis> earlier_;                         // before the last change that lasted
  std::int64_t earlier_lasted_ = 0;                         // calls
  std::int64_t changed_at_ = 0;                             // call
  double most_ = -std::numeric_limits<double>::infinity();  // of all samples
  double prior_spread_ = 0.35;
  double noise_variance_ = first_noise * first_noise;
  double noise_weight_ = 5;
  double drift_variance_ = least_drift;  // of the common offset, per call
  double above_ = 0, below_ = 0;         // cumulated sums of the incumbent's surprises
  std::int64_t epochs_ = 0, last_change_ = 0;
  bool changed_ = false;
  std::optional<int> slowed_{};  // what the last change made slower
  static constexpr double least_drift = 0.005 * 0.005, largest_drift = 0.03 * 0.03;
};

inline belief::belief(std::span<const arm_prior> arms) {
  double best = 0, squares = 0;
  int predicted = 0;
  for (const arm_prior& p : arms) {
    arms_.push_back({.family = index_of_family(p.family),
                     .log2_segment = p.log2_segment,
                     .native = p.native,
                     .own_spread = p.spread});
    if (p.measured_only) continue;
    best = predicted == 0 ? p.log_seconds : std::min(best, p.log_seconds);
    ++predicted;
    squares += p.spread * p.spread;
  }
  if (predicted > 0) prior_spread_ = std::sqrt(squares / predicted);
  // Predictions share an error, too: the machine is busy, or its constants are another's.
  const double common_spread = predicted > 0 ? std::max(0.4, 1.5 * prior_spread_) : 0;

  // An arm without a prediction is thought to be somewhat slower than the best predicted one, with
  // much doubt; without any prediction nothing is known, and 100 microseconds is as good as any.
  const double unknown = predicted > 0 ? best + 0.35 : std::log(1e-4);
  const double unknown_spread = predicted > 0 ? 0.8 : 4.0;
  const int k = size();
  for (const double scale : scales) {
    hypothesis h{.mean = {},
                 .cov = covariance(k),
                 .log_weight = log_weight_per_octave * std::abs(std::log2(scale))};
    for (int i = 0; i < k; ++i) {
      const arm_prior& p = arms[std::size_t(i)];
      arm_state& a = arms_[std::size_t(i)];
      if (p.measured_only) a.own_spread = unknown_spread;
      a.predicted = p.measured_only ? unknown : p.log_seconds;
      h.mean.push_back(a.predicted);
      for (int j = 0; j < k; ++j) {
        const arm_state& b = arms_[std::size_t(j)];
        double c = common_spread * common_spread;
        const double z = p.measured_only ? 1 : scale;
        // The shares of the algorithm, the segment size and the arm itself in an arm's own error.
        if (a.family == b.family)
          c += z * z * a.own_spread * b.own_spread * std::sqrt(shared_part(a) * shared_part(b)) *
               (0.50 + 0.29 * correlated(a, b));
        if (i == j) c += z * z * a.own_spread * a.own_spread * (1 - 0.79 * shared_part(a));
        h.cov(i, j) = c;
      }
    }
    hypotheses_.push_back(std::move(h));
  }
}

inline int belief::index_of_family(int number) {
  const auto known = std::find(families_.begin(), families_.end(), number);
  const auto index = int(known - families_.begin());
  if (known == families_.end()) {
    families_.push_back(number);
    tails_.emplace_back();
  }
  return index;
}

inline void belief::replace(int a, const arm_prior& by) {
  if (slowed_ == a) slowed_.reset();
  arms_[std::size_t(a)] = {.family = index_of_family(by.family),
                           .log2_segment = by.log2_segment,
                           .native = by.native,
                           .own_spread = by.spread,
                           .predicted = by.log_seconds};
  for (std::vector<hypothesis>* const all : {&hypotheses_, &earlier_})
    for (hypothesis& h : *all) {
      h.mean[std::size_t(a)] = by.log_seconds;
      for (int j = 0; j < size(); ++j) h.cov(a, j) = h.cov(j, a) = 0;
      h.cov(a, a) = by.spread * by.spread;
    }
}

/// What the rare slow calls of an arm's algorithm add to the logarithm of its cost: nothing unless
/// they are clearly more than those of the other algorithms. Until these were played, too, slow
/// calls are the machine's.
inline double belief::tail(int a) const {
  const family_tail& mine = tails_[std::size_t(arms_[std::size_t(a)].family)];
  if (mine.outliers < 4) return 0;
  double calls = 20, outliers = 0.4, excess = 20 * 0.35;  // pseudo-calls
  for (const family_tail& t : tails_)
    if (&t != &mine) {
      calls += t.calls;
      outliers += t.outliers;
      excess += t.excess;
    }
  const double share = (mine.outliers + outliers) / (mine.calls + calls);
  const double spread = std::sqrt(share * (1 - share) * (1 / mine.calls + 1 / calls));
  if (mine.outliers / mine.calls - outliers / calls <= 4 * spread) return 0;
  const double usual = excess / calls;
  const double own = (mine.excess + 20 * usual) / (mine.calls + 20);
  return std::max(0.0, std::log((1 + own) / (1 + usual)));
}

inline std::vector<belief::summary> belief::summarise(std::span<const observation> merged) const {
  std::vector<std::vector<double>> logs(arms_.size());
  for (const observation& o : merged)
    if (o.seconds > 0 && std::isfinite(o.seconds))
      logs[std::size_t(o.arm)].push_back(std::log(o.seconds));
  const double limit = noise_limit();
  std::vector<summary> result;
  for (int a = 0; a < size(); ++a) {
    auto& values = logs[std::size_t(a)];
    if (values.empty()) continue;
    std::sort(values.begin(), values.end());
    // An arm's first calls may open connections, and no call is faster than its arm is.
    const double middle =
        arms_[std::size_t(a)].samples == 0 ? values.front() : values[(values.size() - 1) / 2];
    summary s{.arm = a};
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
        s.excess += std::min(100.0, std::exp(y - s.mean) - 1);
      }
    }
    result.push_back(s);
  }
  return result;
}

/// Time passes: the beliefs become less certain, by these variances.
inline void belief::spread_out(double common, double family, double segment, double own) {
  for (hypothesis& h : hypotheses_)
    for (int i = 0; i < size(); ++i)
      for (int j = 0; j < size(); ++j) {
        const arm_state &a = arms_[std::size_t(i)], &b = arms_[std::size_t(j)];
        double more = common;
        if (a.family == b.family) more += family + segment * correlated(a, b);
        if (i == j) more += own;
        h.cov(i, j) += more;
      }
}

/// Looks for a change in the incumbent's times, and learns how much they drift.
inline void belief::watch(const summary& s, std::int64_t elapsed) {
  const double v = variance(s.arm) + noise_variance_ / s.kept + separation_variance;
  const double surprise = s.mean - mean(s.arm);
  const double squared = std::min(surprise * surprise, 9 * v);
  drift_variance_ = std::clamp(
      0.9 * drift_variance_ +
          0.1 * std::max(0.0, drift_variance_ +
                                  (squared - v) / double(std::max<std::int64_t>(1, elapsed))),
      least_drift, largest_drift);
  const auto deviations = [&](double of_variance) {
    return std::clamp(surprise / std::sqrt(of_variance), -6.0, 6.0);
  };
  above_ = std::max(0.0, above_ + deviations(v) - 0.75);
  // Slower calls may be drift; faster ones say that times are better, and not for this arm alone.
  const double of_samples = 2 * noise_variance_ / s.kept + separation_variance;
  below_ = std::max(0.0, below_ - deviations(of_samples) - 0.75);
  changed_ = (above_ > 4 || below_ > 4) && std::abs(surprise) > 0.08 && epochs_ - last_change_ >= 2;
}

/// What shows that the arm that became slower is as quick again as before, if anything does: one
/// call is enough, as none is quicker than its arm.
inline const belief::summary* belief::quick_again(std::span<const summary> epoch) const {
  if (!slowed_ || earlier_.empty()) return nullptr;
  for (const summary& s : epoch) {
    if (s.arm != *slowed_) continue;
    const double off = s.mean - mean(s.arm);
    const double off_before = s.mean - earlier_[speaking_].mean[std::size_t(s.arm)];
    if (off < -noise_limit() && std::abs(off_before) < -off / 2) return &s;
  }
  return nullptr;
}

/// Times have changed, as `seen` shows. Either they are what they were before the last change, or
/// new: then all arms may have changed, those of one algorithm, or, most of all, this one alone.
/// What was the next best must not be condemned unseen, even if it has the next segment size.
inline void belief::begin_anew(const summary& seen, std::int64_t calls) {
  constexpr double common = 0.30 * 0.30, family = 0.15 * 0.15, segment = 0.14 * 0.14,
                   own = 0.35 * 0.35, again = 0.05 * 0.05;
  const auto explained = [&](const hypothesis& h, double more) {
    const double v =
        h.cov(seen.arm, seen.arm) + more + noise_variance_ / seen.kept + separation_variance;
    const double r = seen.mean - h.mean[std::size_t(seen.arm)];
    return std::exp(-0.5 * r * r / v) / std::sqrt(v);
  };
  slowed_.reset();
  if (seen.mean > mean(seen.arm)) slowed_ = seen.arm;
  std::vector<hypothesis> before = hypotheses_;
  if (!earlier_.empty() && explained(earlier_[speaking_], 2 * again) >
                               explained(current(), common + family + segment + own)) {
    hypotheses_ = earlier_;
    for (std::size_t b = 0; b < hypotheses_.size(); ++b)
      hypotheses_[b].log_weight = before[b].log_weight;
    spread_out(again, 0, 0, again);
  } else {
    spread_out(common, family, segment, own);
  }
  // What was learnt in a short time is a mixture of before and after, or of a while that passes.
  const std::int64_t lasted = calls - changed_at_;
  if (lasted >= std::max(lasting, std::min(long_enough, earlier_lasted_ / 2))) {
    earlier_ = std::move(before);
    earlier_lasted_ = lasted;
  }
  changed_at_ = calls;
  last_change_ = epochs_;
  above_ = below_ = 0;
}

inline void belief::apply(const summary& s) {
  arm_state& a = arms_[std::size_t(s.arm)];
  const bool first = a.samples == 0;
  a.bad_first.reset();
  const double v = noise_variance_ / s.kept + separation_variance +
                   (first && s.kept == 1 && s.mean > mean(s.arm) ? first_sample_variance : 0);
  a.samples += s.total();
  bool doubtful = false;
  for (std::size_t b = 0; b < hypotheses_.size(); ++b) {
    hypothesis& h = hypotheses_[b];
    double variance = h.cov(s.arm, s.arm) + v;
    const double r = s.mean - h.mean[std::size_t(s.arm)];
    // A mixture: what the belief expects (with heavy tails), or an outlier.
    const auto normal = [&](double width) {
      return std::exp(-0.5 * r * r / (variance * width * width)) /
             (std::sqrt(2 * std::numbers::pi * variance) * width);
    };
    const double strange = r < 4.2 ? 0.25 : 1e-3;
    double fits = (1 - heavy_tail_weight) * normal(1) + heavy_tail_weight * normal(3);
    if (first) fits += trap_weight * strange;
    // Several samples that agree are none.
    const bool repeated = s.kept >= 3 || a.doubted >= 2;
    const double outlier = repeated ? 0
                           : r > 0  ? std::pow(0.03, std::ceil(s.total() / 2.0) + a.doubted)
                                    : 1e-9;
    const double total = (1 - outlier) * fits + outlier * strange;
    const double w = total > 0 ? (1 - outlier) * fits / total : 1;
    h.log_weight += std::log(std::max(total, 1e-12));
    if (b == speaking_ && w < 0.5) doubtful = true;
    // What nobody expected is the arm's own: it says little about its algorithm. Much makes a call
    // slow, nothing faster than its arm is, so a fast one is believed sooner.
    if (const double own = r * r / (r < 0 ? 1.5 : 9) - variance; own > 0 && w > 0.5) {
      h.cov(s.arm, s.arm) += own;
      variance += own;
    }
    for (int i = 0; i < size(); ++i) h.mean[std::size_t(i)] += w * h.cov(i, s.arm) * r / variance;
    h.cov.add_column_square(s.arm, -w / variance + w * (1 - w) * r * r / (variance * variance));
  }
  a.doubted = doubtful ? std::min(3, a.doubted + 1) : 0;
}

/// Nothing is believed of an arm that lies far from all of its last samples, or, of one with few,
/// beyond all that was ever seen or predicted: whatever the others' samples say.
inline void belief::keep_to_samples() {
  constexpr double twice = std::numbers::ln2;
  for (int i = 0; i < size(); ++i) {
    const arm_state& a = arms_[std::size_t(i)];
    double least = -std::numeric_limits<double>::infinity(), most = std::max(most_, a.predicted);
    if (a.num_latest >= a.latest.size()) {
      const auto [quickest, slowest] = std::ranges::minmax(a.latest);
      least = quickest, most = slowest;
    }
    for (hypothesis& h : hypotheses_) {
      // Of what is expected, which tails and doubt make larger.
      const double beyond = tail(i) + h.cov(i, i) / 2;
      double& mean = h.mean[std::size_t(i)];
      mean = std::max(std::min(mean, most + twice - beyond), least - twice);
    }
  }
}

inline void belief::learn(std::span<const observation> merged, std::int64_t calls,
                          std::int64_t calls_before, int incumbent) {
  const std::int64_t elapsed = std::max<std::int64_t>(0, calls - calls_before);
  std::vector<summary> epoch = summarise(merged);
  changed_ = false;
  if (epoch.empty()) return;
  for (const observation& o : merged) {
    if (!(o.seconds > 0) || !std::isfinite(o.seconds)) continue;
    arm_state& a = arms_[std::size_t(o.arm)];
    const double log_s = std::log(o.seconds);
    a.latest[a.num_latest++ % a.latest.size()] = log_s;
    most_ = std::max(most_, log_s);
  }
  ++epochs_;

  double squares = 0, freedom = 0;
  for (const summary& s : epoch)
    if (s.kept >= 3) {
      squares += s.squares;
      freedom += s.kept - 1;
    }
  const auto refine_noise = [&](double sum, double weight) {
    noise_variance_ = std::clamp((noise_weight_ * noise_variance_ + sum) / (noise_weight_ + weight),
                                 least_noise * least_noise, largest_noise * largest_noise);
    noise_weight_ = std::min(200.0, noise_weight_ + weight);
  };
  if (freedom > 0) refine_noise(squares, freedom);
  for (const summary& s : epoch) {
    arm_state& a = arms_[std::size_t(s.arm)];
    a.last_seen = calls;
    family_tail& t = tails_[std::size_t(a.family)];
    t.calls += s.total();
    t.outliers += s.outliers;
    t.excess += s.excess;
  }
  if (remembered_calls() > 4000)
    for (family_tail& t : tails_) t = {t.calls / 2, t.outliers / 2, t.excess / 2};

  // The common offset first: arms in the order of how little they deviate from the typical one.
  std::vector<std::pair<double, int>> residuals;
  int weights = 0;
  for (const summary& s : epoch) {
    residuals.emplace_back(s.mean - mean(s.arm), std::min(s.kept, 4));
    weights += std::min(s.kept, 4);
  }
  std::sort(residuals.begin(), residuals.end());
  double typical = 0;
  for (int seen = 0; const auto& [residual, weight] : residuals)
    if (2 * (seen += weight) >= weights) {
      typical = residual;
      break;
    }
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < epoch.size(); ++i)
    order.emplace_back(std::abs(epoch[i].mean - mean(epoch[i].arm) - typical), i);
  std::sort(order.begin(), order.end());

  spread_out(drift_variance_ * double(elapsed), 0.03 * 0.03 / 1000 * double(elapsed),
             0.02 * 0.02 / 1000 * double(elapsed), 0.02 * 0.02 / 1000 * double(elapsed));
  // What was played most, which need not be today's incumbent: plans are made an epoch ahead.
  const auto most_seen =
      std::max_element(epoch.begin(), epoch.end(),
                       [](const summary& a, const summary& b) { return a.total() < b.total(); });
  if (most_seen->kept >= 2 && arms_[std::size_t(most_seen->arm)].samples > few)
    watch(*most_seen, elapsed);
  if (const summary* change = changed_ ? &*most_seen : quick_again(epoch)) {
    changed_ = true;
    begin_anew(*change, calls);
  }

  const bool incumbent_new = arms_[std::size_t(incumbent)].samples == 0;
  for (const auto& [distance, i] : order) {
    const summary& s = epoch[i];
    arm_state& a = arms_[std::size_t(s.arm)];
    if (a.samples == 0 && s.total() == 1 && a.doubted == 0 && s.arm != incumbent && !a.native) {
      // A bad first sample is an upper bound, not a value: the arm is given a second chance.
      const double difference = covariances().of_difference(s.arm, incumbent);
      const double surprise = s.mean - mean(s.arm) - (incumbent_new ? typical : 0);
      if (surprise >
          2.5 * std::sqrt(std::min(difference, prior_spread_ * prior_spread_) + noise_variance_)) {
        a.doubted = 1;
        a.bad_first = s.mean;
        continue;
      }
    }
    const bool doubted_before = a.doubted > 0;
    apply(s);
    if (s.kept < 3 && a.samples > 2 + s.total() && !doubted_before) {
      const double r = s.mean - mean(s.arm);
      refine_noise(0.5 * std::min(r * r, 9 * noise_variance_ / s.kept) * s.kept, 0.5);
    }
  }

  // Which scale of the prior's errors explains the measurements best; ties go to the smaller one.
  double heaviest = hypotheses_[0].log_weight;
  for (const hypothesis& h : hypotheses_) heaviest = std::max(heaviest, h.log_weight);
  speaking_ = 0;
  for (std::size_t b = 0; b < hypotheses_.size(); ++b) {
    hypotheses_[b].log_weight = std::max(hypotheses_[b].log_weight - heaviest, -6.0);
    if (hypotheses_[b].log_weight > hypotheses_[speaking_].log_weight + 1e-12) speaking_ = b;
  }
  keep_to_samples();
}

}  // namespace railpass::select

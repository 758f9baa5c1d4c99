// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/select/policy/policy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace railpass::select {

/// Means and posteriors from a book's sums and the predictions, for policies without a belief.
class tally {
 public:
  explicit tally(std::vector<arm_prior> priors)
      : priors_(std::move(priors)), times_(priors_.size()) {
    if (priors_.empty()) throw error("policy: expected at least one arm");
  }

  /// The tally uses the book until it reads again.
  void read(const arm_book& book) {
    for (std::size_t a = 0; a < priors_.size(); ++a) times_[a] = book.find(priors_[a].arm);
  }

  std::span<const arm_prior> arms() const { return priors_; }
  int samples(std::size_t a) const { return int(sums(a).samples); }

  /// Mean of the samples alone; infinite if there are none.
  double sample_mean(std::size_t a) const {
    return samples(a) > 0 ? sums(a).mean_s() : std::numeric_limits<double>::infinity();
  }

  /// Means in which the prediction counts as one sample, after all predictions were scaled by the
  /// median of measured / predicted. The estimate of an arm without prediction and measurement is
  /// the best mean.
  std::vector<double> means() const {
    std::vector<double> ratios;
    for (std::size_t a = 0; a < priors_.size(); ++a)
      if (samples(a) > 0 && !priors_[a].measured_only)
        ratios.push_back(sums(a).mean_log() - priors_[a].log_seconds);
    double offset = 0;
    if (!ratios.empty()) {
      const auto middle = ratios.begin() + std::ptrdiff_t(ratios.size() / 2);
      std::nth_element(ratios.begin(), middle, ratios.end());
      offset = *middle;
    }
    std::vector<double> result(priors_.size(), std::numeric_limits<double>::infinity());
    for (std::size_t a = 0; a < priors_.size(); ++a) {
      if (priors_[a].measured_only) {
        result[a] = sample_mean(a);
        continue;
      }
      const double predicted = std::exp(priors_[a].log_seconds + offset);
      result[a] = (predicted + sums(a).sum_s) / (1 + samples(a));
    }
    const double best = *std::min_element(result.begin(), result.end());
    for (double& m : result)
      if (!std::isfinite(m)) m = std::isfinite(best) ? best : 1e-4;
    return result;
  }

  std::optional<time_estimate> posterior(int arm) const {
    const std::vector<double> all = means();
    for (std::size_t a = 0; a < priors_.size(); ++a) {
      if (priors_[a].arm != arm) continue;
      if (samples(a) == 0 && priors_[a].measured_only) return std::nullopt;
      if (samples(a) < 2) return time_estimate{all[a], priors_[a].spread};
      return time_estimate{all[a], std::sqrt(sums(a).variance() / (samples(a) - 1))};
    }
    return std::nullopt;
  }

 private:
  sample_sums sums(std::size_t a) const { return times_[a] ? times_[a]->sums : sample_sums{}; }

  std::vector<arm_prior> priors_;
  std::vector<const arm_times*> times_;  // by position in priors_; null: no sample
};

/// Base of policies that always run one arm. Some calls are timed, for statistics.
class constant_policy : public policy {
 public:
  constant_policy(std::vector<arm_prior> priors, int arm) : tally_(std::move(priors)), arm_(arm) {}

  void learn(const arm_book& book) override { tally_.read(book); }
  epoch_plan plan(const planning_input& now) override {
    return {.incumbent = arm_,
            .length = int(std::clamp<std::int64_t>(now.calls, 64, 1 << 30)),
            .timed_stride = now.calls < 64 ? 4 : 64};
  }
  std::span<const arm_prior> arms() const override { return tally_.arms(); }
  std::vector<double> probabilities() const override {
    std::vector<double> result;
    for (const arm_prior& p : arms()) result.push_back(p.arm == arm_ ? 1 : 0);
    return result;
  }
  std::optional<time_estimate> posterior(int arm) const override { return tally_.posterior(arm); }

 private:
  tally tally_;
  int arm_;
};

}  // namespace railpass::select

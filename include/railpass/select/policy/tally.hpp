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

/// Plain sums per arm, for policies without a belief.
class tally {
 public:
  explicit tally(std::vector<arm_prior> priors)
      : priors_(std::move(priors)), sums_(priors_.size()) {
    if (priors_.empty()) throw error("policy: expected at least one arm");
  }

  void add(std::span<const observation> merged) {
    for (const observation& o : merged)
      for (std::size_t a = 0; a < priors_.size(); ++a)
        if (priors_[a].arm == o.arm) {
          sums& s = sums_[a];
          const double log_s = std::log(o.seconds);
          ++s.samples;
          s.seconds += o.seconds;
          s.logs += log_s;
          s.squares += log_s * log_s;
        }
  }

  std::span<const arm_prior> arms() const { return priors_; }
  int samples(std::size_t a) const { return sums_[a].samples; }

  /// Mean of the samples alone; infinite if there are none.
  double sample_mean(std::size_t a) const {
    return sums_[a].samples > 0 ? sums_[a].seconds / sums_[a].samples
                                : std::numeric_limits<double>::infinity();
  }

  /// Means in which the prediction counts as one sample, after all predictions were scaled by the
  /// median of measured / predicted. The estimate of an arm without prediction and measurement is
  /// the best mean.
  std::vector<double> means() const {
    std::vector<double> ratios;
    for (std::size_t a = 0; a < priors_.size(); ++a)
      if (sums_[a].samples > 0 && !priors_[a].measured_only)
        ratios.push_back(sums_[a].logs / sums_[a].samples - priors_[a].log_seconds);
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
      result[a] = (predicted + sums_[a].seconds) / (1 + sums_[a].samples);
    }
    const double best = *std::min_element(result.begin(), result.end());
    for (double& m : result)
      if (!std::isfinite(m)) m = std::isfinite(best) ? best : 1e-4;
    return result;
  }

  std::optional<arm_posterior> posterior(int arm) const {
    const std::vector<double> all = means();
    for (std::size_t a = 0; a < priors_.size(); ++a) {
      if (priors_[a].arm != arm) continue;
      const sums& s = sums_[a];
      if (s.samples == 0 && priors_[a].measured_only) return std::nullopt;
      if (s.samples < 2) return arm_posterior{all[a], priors_[a].spread};
      const double mean_log = s.logs / s.samples;
      const double variance = std::max(0.0, s.squares / s.samples - mean_log * mean_log);
      return arm_posterior{all[a], std::sqrt(variance / (s.samples - 1))};
    }
    return std::nullopt;
  }

 private:
  struct sums {
    int samples = 0;
    double seconds = 0, logs = 0, squares = 0;
  };
  std::vector<arm_prior> priors_;
  std::vector<sums> sums_;
};

/// Base of policies that always run one arm. Some calls are timed, for statistics.
class constant_policy : public policy {
 public:
  constant_policy(std::vector<arm_prior> priors, int arm) : tally_(std::move(priors)), arm_(arm) {}

  void learn(std::span<const observation> merged, std::int64_t) override { tally_.add(merged); }
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
  std::optional<arm_posterior> posterior(int arm) const override { return tally_.posterior(arm); }

 private:
  tally tally_;
  int arm_;
};

}  // namespace railpass::select

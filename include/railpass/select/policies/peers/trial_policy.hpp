// SPDX-License-Identifier: BSL-1.0
//
// The base of the policies of other autotuners: arms are tried a fixed number of times in a fixed
// order, whatever they cost, and a rule decides after all measurements. Models are not used.
#pragma once

#include "railpass/select/policy/tally.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace railpass::select {

class trial_policy : public policy {
 public:
  explicit trial_policy(std::vector<arm_prior> priors)
      : tally_(std::move(priors)),
        samples_(tally_.arms().size()),
        wanted_(samples_.size(), 0),
        probability_(samples_.size(), 0) {
    for (std::size_t a = 0; a < samples_.size(); ++a)
      if (tally_.arms()[a].native) incumbent_ = a;
  }

  void learn(const arm_book& book) override {
    tally_.read(book);
    for (const observation& o : book.merged())
      for (std::size_t a = 0; a < samples_.size(); ++a)
        if (tally_.arms()[a].arm == o.arm) samples_[a].push_back(o.seconds);
  }

  epoch_plan plan(const planning_input& now) override {
    if (measured()) decide(now.calls);
    std::vector<std::size_t> tried(samples_.size());  // or about to be
    for (std::size_t a = 0; a < tried.size(); ++a) tried[a] = samples_[a].size();
    for (const int arm : now.pending)
      for (std::size_t a = 0; a < tried.size(); ++a) tried[a] += tally_.arms()[a].arm == arm;
    epoch_plan p{.incumbent = tally_.arms()[incumbent_].arm};
    std::fill(probability_.begin(), probability_.end(), 0.0);
    for (std::size_t a = 0; a < tried.size(); ++a)
      for (; tried[a] < wanted_[a] && p.explore.size() < batch; ++tried[a]) {
        p.explore.push_back({int(p.explore.size()), tally_.arms()[a].arm});
        probability_[a] += 1;
      }
    if (p.explore.empty()) {
      probability_[incumbent_] = 1;
      // Outstanding measurements decide; without any, the next decision is as far away as settle()
      // says.
      if (measured()) settle(now.calls, p);
    } else {
      p.length = int(p.explore.size());
      for (double& share : probability_) share /= p.length;
    }
    return p;
  }

  std::span<const arm_prior> arms() const override { return tally_.arms(); }
  std::vector<double> probabilities() const override { return probability_; }
  std::optional<time_estimate> posterior(int arm) const override { return tally_.posterior(arm); }

 protected:
  /// Called after all wanted measurements: asks for more with want(), or chooses.
  virtual void decide(std::int64_t calls) = 0;
  /// Sets how long the incumbent runs and how often it is timed if no measurement is wanted.
  /// Permanently, unless a policy overrides it.
  virtual void settle(std::int64_t calls, epoch_plan& p) const {
    p.length = int(std::clamp<std::int64_t>(calls, 64, 1 << 30));
    p.timed_stride = 64;
  }

  std::size_t num_arms() const { return samples_.size(); }
  const arm_prior& prior(std::size_t a) const { return tally_.arms()[a]; }
  /// In the order of their synchronisations; a call's time is that of its slowest rank.
  const std::vector<double>& samples(std::size_t a) const { return samples_[a]; }
  std::size_t incumbent() const { return incumbent_; }
  void choose(std::size_t a) { incumbent_ = a; }
  /// Arm `a` is to have `trials` samples before decide() is asked again.
  void want(std::size_t a, std::size_t trials) { wanted_[a] = trials; }
  void want_all(std::size_t trials) { std::fill(wanted_.begin(), wanted_.end(), trials); }
  /// Forgets an arm's samples.
  void forget(std::size_t a) { samples_[a].clear(); }

  /// The measured arm with the smallest score.
  template <class F>
  std::size_t smallest(F score) const {
    std::size_t best = incumbent_;
    for (std::size_t a = 0; a < samples_.size(); ++a)
      if (!samples_[a].empty() && (samples_[best].empty() || score(a) < score(best))) best = a;
    return best;
  }
  double mean(std::size_t a) const {
    return std::accumulate(samples_[a].begin(), samples_[a].end(), 0.0) /
           double(samples_[a].size());
  }

 private:
  static constexpr std::size_t batch = 12;  // explored calls per merge, so that none is dropped

  bool measured() const {
    for (std::size_t a = 0; a < samples_.size(); ++a)
      if (samples_[a].size() < wanted_[a]) return false;
    return true;
  }

  tally tally_;
  std::vector<std::vector<double>> samples_;  // by position in arms()
  std::vector<std::size_t> wanted_;
  std::vector<double> probability_;
  std::size_t incumbent_ = 0;
};

/// ADCL's score of an arm: the mean of the samples below 3 times the smallest sample. If more than
/// a fifth of the samples is above, the score is the mean of all. ADCL's default is 30 trials of
/// each arm. Source: Feki, Gabriel: Incorporating historic knowledge into a communication library
/// for self-optimizing high performance computing applications, SASO 2008,
/// doi:10.1109/SASO.2008.49.
inline constexpr std::size_t adcl_trials = 30;
inline double adcl_score(const std::vector<double>& samples) {
  constexpr double outlier_factor = 3, largest_outlier_share = 0.2;
  const double limit = outlier_factor * *std::min_element(samples.begin(), samples.end());
  double all = 0, kept = 0;
  std::size_t num_kept = 0;
  for (const double s : samples) {
    all += s;
    if (s >= limit) continue;
    kept += s;
    ++num_kept;
  }
  const auto count = double(samples.size()), outliers = count - double(num_kept);
  return outliers < largest_outlier_share * count ? kept / double(num_kept) : all / count;
}

}  // namespace railpass::select

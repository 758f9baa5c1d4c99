// SPDX-License-Identifier: BSL-1.0
#include "lib/tune/measurements.hpp"

#include "railpass/base/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace railpass::internal::tune {

double normal_below(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

double normal_quantile(double p) {
  double low = -40, high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (normal_below(middle) < p ? low : high) = middle;
  }
  return high;
}

double table::score_of(double value, std::size_t goal) const {
  return goals_[goal].higher_is_better ? -std::log(value) : std::log(value);
}

double table::value_of(double score, std::size_t goal) const {
  return std::exp(goals_[goal].higher_is_better ? -score : score);
}

void table::add(const combination& what, const outcome& found) {
  record& r = records_[what];
  r.what = what;
  ++r.runs;
  if (!found.ok()) {
    if (r.failure.empty()) r.failure = found.failure;
    return;
  }
  std::vector<double> scores;
  for (std::size_t g = 0; g < goals_.size(); ++g) scores.push_back(score_of(found.values[g], g));
  r.scores.push_back(std::move(scores));
}

const record* table::find(const combination& what) const {
  const auto found = records_.find(what);
  return found == records_.end() ? nullptr : &found->second;
}

double typical_score(std::vector<double> scores) {
  const auto middle = scores.begin() + std::ptrdiff_t((scores.size() - 1) / 2);
  std::nth_element(scores.begin(), middle, scores.end());
  return *middle;
}

double weighted(const std::vector<double>& scores, std::span<const double> weights) {
  double sum = 0;
  for (std::size_t g = 0; g < weights.size(); ++g) sum += weights[g] * scores[g];
  return sum;
}

standings::standings(const table& measured, std::span<const double> weights,
                     const precision& wanted)
    : resolution_(std::log1p(wanted.resolution)), z_(normal_quantile((1 + wanted.confidence) / 2)) {
  std::vector<double> variances;
  double freedom = 0;
  for (const auto& [what, r] : measured.records()) {
    if (r.failed()) continue;
    std::vector<double> scores;
    for (const auto& s : r.scores) scores.push_back(weighted(s, weights));
    const double n = double(scores.size());
    all_.push_back({&r, typical_score(scores), n});
    if (n < 2) continue;
    double mean = 0, sum = 0;
    for (const double s : scores) mean += s / n;
    for (const double s : scores) sum += (s - mean) * (s - mean);
    variances.push_back(sum / (n - 1));
    freedom += n - 1;
  }
  if (!variances.empty()) {
    // A few disturbed launches must not widen the errors of all combinations.
    std::vector<double> sorted = variances;
    std::sort(sorted.begin(), sorted.end());
    const double ceiling = sorted.size() < 5 ? sorted.back() : 12 * quantile(sorted, 0.5) + 1e-300;
    double sum = 0;
    for (const double v : variances) sum += std::min(v, ceiling) / double(variances.size());
    noise_ = std::sqrt(sum);
  }
  for (standing& s : all_) {
    const double n = s.error;
    // A median of three and more is a fifth less sure than a mean.
    s.error = noise_ / std::sqrt(n) * (n < 3 ? 1 : 1.2);
  }
  std::stable_sort(all_.begin(), all_.end(),
                   [](const standing& a, const standing& b) { return a.score < b.score; });
  // The best of many is partly best by luck. So the confidence covers all comparisons with it
  // together, one per contender.
  for (std::size_t contenders = 1;;) {
    z_ = normal_quantile((1 + std::pow(wanted.confidence, 1 / double(contenders))) / 2);
    // Student's quantile if few launches give the noise.
    if (freedom > 0) z_ *= 1 + (z_ * z_ + 1) / (4 * freedom);
    winners_ = 0;
    while (winners_ < all_.size() && tied(all_.front(), all_[winners_])) ++winners_;
    if (winners_ <= contenders) break;
    contenders = winners_;
  }
}

double standings::margin(double error) const { return z_ * error; }

double standings::reach(const standing& a, const standing& b) const {
  return std::max(resolution_, margin(std::hypot(a.error, b.error)));
}

bool standings::tied(const standing& a, const standing& b) const {
  // Rounding must not separate equal values.
  return std::abs(a.score - b.score) <= reach(a, b) * (1 + 1e-9) + 1e-12;
}

}  // namespace railpass::internal::tune

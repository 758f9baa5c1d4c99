// SPDX-License-Identifier: BSL-1.0
//
// The accuracy of predictions, by the paper's evaluation: each problem is left out once and
// predicted from all other problems. The predicted arm is then compared with the measured times.
#pragma once

#include "railpass/knowledge/analysis.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace railpass::knowledge {

/// The arm's time beyond the best arm's, relative to the best; empty if the arm did not run.
inline std::optional<double> loss_of(int arm, const instance& really) {
  const auto& its = really.arms[std::size_t(arm)];
  if (!its) return std::nullopt;
  double best_s = its->seconds;
  for (const auto& t : really.arms)
    if (t) best_s = std::min(best_s, t->seconds);
  return its->seconds / best_s - 1;
}

/// The accuracy of predicted arms, one per problem.
class accuracy {
 public:
  /// @param named the predicted arms; empty: no prediction
  /// @param really the measured times
  accuracy(std::span<const std::optional<int>> named, std::span<const instance> really)
      : problems_(really.size()) {
    for (std::size_t i = 0; i < really.size(); ++i)
      if (const auto loss = named[i] ? loss_of(*named[i], really[i]) : std::nullopt)
        losses_.push_back(*loss);
  }

  std::size_t problems() const { return problems_; }
  /// Number of problems whose predicted arm can run.
  std::size_t predicted() const { return losses_.size(); }
  /// Share of all problems whose predicted arm takes at most 1 + window times the best time. A
  /// missing prediction counts as wrong.
  double right(double window) const {
    const auto right = std::ranges::count_if(losses_, [&](double loss) { return loss <= window; });
    return problems_ == 0 ? 0 : double(right) / double(problems_);
  }
  /// Mean time of the predicted arms beyond the best, relative to the best.
  double mean_loss() const {
    double sum = 0;
    for (const double loss : losses_) sum += loss;
    return losses_.empty() ? 0 : sum / double(losses_.size());
  }

 private:
  std::size_t problems_ = 0;
  std::vector<double> losses_;
};

/// All problems except one, with only the arms that can run there.
inline std::vector<instance> without(std::span<const instance> all, std::size_t left_out) {
  std::vector<instance> rest;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == left_out) continue;
    instance known = all[i];
    bool has_times = false;
    for (std::size_t a = 0; a < known.arms.size(); ++a) {
      if (!all[left_out].arms[a]) known.arms[a].reset();
      has_times = has_times || known.arms[a];
    }
    if (has_times) rest.push_back(std::move(known));
  }
  return rest;
}

using predictor = prediction (analysis::*)(std::span<const double>) const;

/// The arm predicted for each problem from all other problems.
inline std::vector<std::optional<int>> leave_one_out(std::span<const instance> known, predictor how,
                                                     const analysis_options& o = {}) {
  std::vector<std::optional<int>> named(known.size());
  for (std::size_t i = 0; i < known.size(); ++i) {
    const prediction said = (analysis(without(known, i), o).*how)(known[i].coordinates);
    if (said.made) named[i] = said.made->arm;
  }
  return named;
}

/// The arm with the least total time over all problems, among arms that ran in all of them; empty
/// if there is no such arm.
inline std::optional<int> best_single_arm(std::span<const instance> known) {
  std::optional<int> best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t a = 0; !known.empty() && a < known.front().arms.size(); ++a) {
    double sum = 0;
    for (const instance& i : known)
      sum += loss_of(int(a), i).value_or(std::numeric_limits<double>::infinity());
    if (sum < least) {
      best = int(a);
      least = sum;
    }
  }
  return best;
}

}  // namespace railpass::knowledge

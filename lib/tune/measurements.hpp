// SPDX-License-Identifier: BSL-1.0
//
// Measurements of combinations, and which combinations differ significantly.
#pragma once

#include "lib/tune/space.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace railpass::internal::tune {

/// A quantity to minimise or maximise.
struct goal {
  std::string name;
  std::string unit;  ///< of the values, if known
  bool higher_is_better = false;
};

/// Result of one launch of the command.
struct outcome {
  std::vector<double> values;  ///< one per goal, positive; empty after a failure
  std::string failure;         ///< reason of the failure, as a sentence
  double took_s = 0;
  bool ok() const { return !values.empty(); }
};

/// All launches with one combination. A score is the logarithm of a value, signed so that less is
/// better.
struct record {
  combination what;
  std::vector<std::vector<double>> scores;  ///< for each successful launch, a score per goal
  std::string failure;                      ///< of the first failed launch
  int runs = 0;

  bool failed() const { return !failure.empty(); }
};

class table {
 public:
  explicit table(std::vector<goal> goals) : goals_(std::move(goals)) {}

  const std::vector<goal>& goals() const { return goals_; }
  void add(const combination& what, const outcome& found);
  /// Null if the combination was not launched.
  const record* find(const combination& what) const;
  const std::map<combination, record>& records() const { return records_; }
  double value_of(double score, std::size_t goal) const;
  double score_of(double value, std::size_t goal) const;

 private:
  std::vector<goal> goals_;
  std::map<combination, record> records_;
};

/// Requirements for calling two combinations different.
struct precision {
  double confidence = 0.95;
  double resolution = 0.002;  ///< relative differences up to this value are ignored
  int repetitions = 3;        ///< successful launches after which a combination counts as measured
};

/// Rank of one combination.
struct standing {
  const record* of;
  double score;  ///< typical_score of its launches
  double error;  ///< standard error of the score
};

/// The combinations without a failed launch, best first. The spread of the launches is pooled over
/// all combinations: it belongs to the command and the machine. Comparisons are with the best of
/// many (Hsu, Multiple Comparisons, 1996), with Sidak's correction for their number.
class standings {
 public:
  /// `weights`: of the goals; the score is the weighted sum.
  standings(const table& measured, std::span<const double> weights, const precision& wanted);

  const std::vector<standing>& all() const { return all_; }
  /// The standard deviation of one launch's score; 0: unknown, because nothing was launched twice.
  double noise() const { return noise_; }
  /// Differences up to this value are not significant. Without noise, this is the resolution.
  double reach(const standing& a, const standing& b) const;
  bool tied(const standing& a, const standing& b) const;
  /// The number of combinations at the front that are tied with the best.
  std::size_t winners() const { return winners_; }
  /// Half the width of the confidence interval of a difference with this standard error.
  double margin(double error) const;

 private:
  std::vector<standing> all_;
  std::size_t winners_ = 0;
  double noise_ = 0, resolution_, z_ = 0;
};

/// The median; of an even number, the better of the two middle scores, because disturbances make
/// launches worse and hardly ever better. Takes at least one score.
double typical_score(std::vector<double> scores);

double weighted(const std::vector<double>& scores, std::span<const double> weights);

/// The probability of a normal variable below x, and its inverse.
double normal_below(double x);
double normal_quantile(double p);

}  // namespace railpass::internal::tune

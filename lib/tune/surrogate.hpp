// SPDX-License-Identifier: BSL-1.0
//
// Predicts scores of unmeasured combinations from measured ones. A Gaussian process whose
// covariance is a sum over parameters and pairs of parameters (additive Gaussian processes,
// Duvenaud, Nickisch, Rasmussen, arXiv:1112.4394). So a parameter or an interaction without effect
// costs no launches. Numeric levels of a parameter have distances; other levels are equally far
// apart.
#pragma once

#include "lib/tune/space.hpp"

#include <memory>
#include <span>
#include <vector>

namespace railpass::internal::tune {

/// One measured combination.
struct observation {
  combination what;
  double score = 0;
  double runs = 1;  ///< launches behind the score
};

class surrogate {
 public:
  explicit surrogate(const space& where);
  ~surrogate();
  surrogate(const surrogate&) = delete;
  surrogate& operator=(const surrogate&) = delete;

  struct prediction {
    double mean = 0;
    double deviation = 0;  ///< of the combination's true score, without the noise of a launch
  };

  /// Takes at least one observation. `noise`: of one launch's score; 0: unknown, and estimated as
  /// well. `learn`: estimate the parameters of the covariance again, starting from their present
  /// values.
  void fit(std::span<const observation> seen, double noise, bool learn);
  std::vector<prediction> predict(std::span<const combination> at) const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace railpass::internal::tune

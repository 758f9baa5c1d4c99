// SPDX-License-Identifier: BSL-1.0
//
// What the measured combinations say about the others: a Gaussian process whose covariance is a sum
// over parameters and over pairs of them (additive Gaussian processes, Duvenaud, Nickisch,
// Rasmussen, arXiv:1112.4394), so that a parameter or an interaction that does not matter costs no
// launches. Levels of a parameter with numbers are near each other, others are not.
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
  double runs = 1;  ///< launches the score is from
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

  /// Takes at least one observation. `noise`: of one launch's score; 0: unknown, estimated too.
  /// `learn`: estimate the parameters of the covariance anew, from where they were.
  void fit(std::span<const observation> seen, double noise, bool learn);
  std::vector<prediction> predict(std::span<const combination> at) const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace railpass::internal::tune

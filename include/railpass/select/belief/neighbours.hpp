// SPDX-License-Identifier: BSL-1.0
//
// Corrects the priors of a new context with the estimates of a context of a similar size: the
// errors of the model at 64 KiB and at 128 KiB are similar.
#pragma once

#include "railpass/base/statistics.hpp"
#include "railpass/select/policy/policy.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

namespace railpass::select {

/// Contexts of sizes further apart share nothing.
inline constexpr int most_octaves = 3;

/// Corrects `priors` by the errors of the same arms' predictions in a context `octaves` away. Arms
/// that are unknown there get the typical correction, so that a slower machine changes no order. An
/// arm without a prediction keeps none.
/// @param known_there returns an arm's time_estimate, or nothing
template <class Known>
void correct_by_neighbour(std::span<arm_prior> priors, const Known& known_there,
                          std::span<const arm_prior> predicted_there, double octaves) {
  // How far errors drift apart in one octave, relative to their size.
  constexpr double drift_per_octave = 0.7;
  // The correlation over one octave of an arm's own error, beyond the common error. Some arms
  // change their buffers and protocols at other sizes than other arms.
  constexpr double kept_per_octave = 0.7;
  // An estimate with a larger spread than the prediction counts only if the distance between them
  // exceeds so many standard deviations.
  constexpr double most_deviations = 3;
  struct correction {
    double shift = 0, variance = 0;
    bool contradicts = false;
  };
  std::vector<std::optional<correction>> known(priors.size());
  std::vector<double> shifts;
  for (std::size_t i = 0; i < priors.size(); ++i) {
    if (priors[i].measured_only) continue;
    const auto there = std::find_if(predicted_there.begin(), predicted_there.end(),
                                    [&](const arm_prior& p) { return p.arm == priors[i].arm; });
    if (there == predicted_there.end() || there->measured_only) continue;
    const std::optional<time_estimate> thinks = known_there(priors[i].arm);
    if (!thinks || !(thinks->mean_s > 0)) continue;
    const double shift = thinks->log_seconds() - there->log_seconds;
    const bool contradicts =
        std::abs(shift) > most_deviations * std::hypot(thinks->spread, there->spread);
    const bool is_sure = thinks->spread < 0.9 * there->spread;
    if (!is_sure && !contradicts) continue;
    known[i] = {shift, thinks->spread * thinks->spread, contradicts};
    if (is_sure && !priors[i].native) shifts.push_back(shift);
  }
  const double of_model = shifts.empty() ? 0 : median(shifts);
  const double kept = std::pow(kept_per_octave, octaves);
  for (std::size_t i = 0; i < priors.size(); ++i) {
    arm_prior& p = priors[i];
    if (p.measured_only) continue;
    // Native's time comes from a table instead of the model, so its error is independent.
    const double typical = p.native ? 0 : of_model;
    if (!known[i]) {
      p.log_seconds += typical;
      continue;
    }
    const double drift = drift_per_octave * p.spread;
    p.log_seconds += typical + kept * (known[i]->shift - typical);
    const double spread = std::sqrt(known[i]->variance + octaves * drift * drift);
    p.spread = known[i]->contradicts ? spread : std::min(p.spread, spread);
  }
}

}  // namespace railpass::select

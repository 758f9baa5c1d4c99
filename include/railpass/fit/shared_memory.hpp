// SPDX-License-Identifier: BSL-1.0
//
// Fits the model of memory that ranks share to handovers and single copies.
#pragma once

#include "models/samples.hpp"
#include "railpass/fit/links.hpp"

#include <algorithm>

namespace railpass {

/// Returns the fitted model; `generic` replaces unmeasured parts.
inline shared_memory_model fit_shared_memory(const measurements& m,
                                             const shared_memory_model& generic) {
  shared_memory_model result = generic;
  if (m.handovers.empty()) return result;
  // A handover consists of publishing, seeing and fetching. Measurements cannot separate the two
  // short copies from the delay.
  const local_model handover = fit_local(m.handovers);
  const double near_s =
      m.near_handovers.empty() ? handover.alpha_s : fit_local(m.near_handovers).alpha_s;
  result.copy = {.alpha_s = std::min(generic.copy.alpha_s, std::min(handover.alpha_s, near_s) / 4),
                 .s_per_byte = handover.s_per_byte / 2};
  result.seen_s = handover.alpha_s - 2 * result.copy.alpha_s;
  if (!m.near_handovers.empty()) result.near_seen_s = near_s - 2 * result.copy.alpha_s;
  result.measured = true;
  if (m.single_copies.empty()) return result;
  // A single copy consists of showing, seeing, copying, and seeing that the copy has ended.
  const local_model single = fit_local(m.single_copies);
  result.single_copy = {
      .alpha_s = std::max(0.0, single.alpha_s - 2 * result.seen_s - result.copy.alpha_s),
      .s_per_byte = single.s_per_byte};
  return result;
}

}  // namespace railpass

// SPDX-License-Identifier: BSL-1.0
//
// What handing over takes in memory that ranks share.
#pragma once

#include "models/samples.hpp"
#include "railpass/fit/links.hpp"

#include <algorithm>

namespace railpass {

/// From handovers and single copies; `generic` for what was not measured.
inline shared_memory_model fit_shared_memory(const measurements& m,
                                             const shared_memory_model& generic) {
  shared_memory_model result = generic;
  if (m.handovers.empty()) return result;
  // It is published, seen and fetched. Nothing tells the two short copies from the waiting.
  const local_model handover = fit_local(m.handovers);
  const double near_s =
      m.near_handovers.empty() ? handover.alpha_s : fit_local(m.near_handovers).alpha_s;
  result.copy = {.alpha_s = std::min(generic.copy.alpha_s, std::min(handover.alpha_s, near_s) / 4),
                 .s_per_byte = handover.s_per_byte / 2};
  result.seen_s = handover.alpha_s - 2 * result.copy.alpha_s;
  if (!m.near_handovers.empty()) result.near_seen_s = near_s - 2 * result.copy.alpha_s;
  result.measured = true;
  if (m.single_copies.empty()) return result;
  // It is shown, seen and copied, and that this is done is seen.
  const local_model single = fit_local(m.single_copies);
  result.single_copy = {
      .alpha_s = std::max(0.0, single.alpha_s - 2 * result.seen_s - result.copy.alpha_s),
      .s_per_byte = single.s_per_byte};
  return result;
}

}  // namespace railpass

// SPDX-License-Identifier: BSL-1.0
//
// A picture of a schedule that was played: which rank does what when.
#pragma once

#include "models/trace.hpp"

#include <string>

namespace railpass::internal::report {

/// Of more ranks, some are drawn: the root, the last rank to finish, and evenly spaced ranks.
inline constexpr int most_ranks_drawn = 64;

/// A timeline with a lane per rank: sends and receives, reductions and copies, and an arrow per
/// message if there are few messages. For a collective that spreads from a root, a curve below
/// shows the number of ranks reached. Self-contained SVG; needs simulation_setup::record.
std::string draw_schedule_timeline(const simulation& run, const timeline_caption& caption);

}  // namespace railpass::internal::report

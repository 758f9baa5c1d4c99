// SPDX-License-Identifier: BSL-1.0
//
// A bench that was started several times: within one launch times hardly vary, from launch to
// launch they may, as ranks and their memory lie elsewhere.
#pragma once

#include "models/samples.hpp"

#include <span>

namespace railpass::internal::measure {

/// The launches as one bench: times and ratios are medians over the launches, and intervals of
/// ratios hold for those medians (bounds_of_median: from fewer than 6 launches with less than 95 %
/// confidence). The spread of the runs is that within a launch and that of the launches together.
/// Of the notes those that differ stand one after the other. Throws error if there is no launch, or
/// they had different numbers of ranks.
bench_results over_launches(std::span<const bench_results> launches);

}  // namespace railpass::internal::measure

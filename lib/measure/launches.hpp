// SPDX-License-Identifier: BSL-1.0
//
// Combines several launches of a bench. Times vary little within a launch, but may vary between
// launches, as ranks and their memory are placed differently.
#pragma once

#include "models/samples.hpp"

#include <span>

namespace railpass::internal::measure {

/// Combines the launches into one bench. Times and ratios are medians over the launches. Intervals
/// of ratios are for these medians (bounds_of_median); there are none of fewer than 6 launches, as
/// the confidence would be below 95 %. Launches may have different cells. An arm that gave a wrong
/// result in any launch has no row of the collective. The spread of runs combines the spread within
/// and between launches. Differing notes are listed one after the other. Throws error without
/// launches, or if numbers of ranks differ.
bench_results over_launches(std::span<const bench_results> launches);

/// Adds the rows of `by_algorithm`, a launch with one of the MPI library's own algorithms, to
/// `by_default`, a launch with the library's default, and the notes that `by_default` lacks. Ratios
/// of the rows are to native's medians in `by_default`.
void add_own_algorithm(bench_results& by_default, const bench_results& by_algorithm);

}  // namespace railpass::internal::measure

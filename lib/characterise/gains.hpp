// SPDX-License-Identifier: BSL-1.0
//
// Gains of the fastest measured arms over the MPI library's default. Pure.
#pragma once

#include "models/samples.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace railpass::internal::characterise {

/// Algorithms of the MPI library, or of railpass.
enum class arms_of { library, railpass };

/// Whether the interval of the ratio to native, over the launches, has 95 % confidence and ends
/// below 1.
bool is_certain_gain(const bench_result& r);

/// The fastest arm of a cell with a certain gain. Null if no arm has such a gain.
const bench_result* surest(const bench_results& bench, const std::string& collective,
                           std::int64_t bytes, arms_of kind);
/// The fastest arm of a cell, certain or not, among the arms with at least half of the most
/// launches: a single launch may be lucky. Null if no arm was measured.
const bench_result* fastest(const bench_results& bench, const std::string& collective,
                            std::int64_t bytes, arms_of kind);

/// Whether an arm may be faster than native, but has too few launches to show this.
bool is_undecided(const bench_results& bench, const std::string& collective, std::int64_t bytes,
                  arms_of kind);
/// The results of all other cells: an undecided cell must not stand for native between two cells
/// with a gain. It does if an arm that gains at smaller and at larger sizes was slower there.
bench_results decided(const bench_results& bench, arms_of kind);

/// One collective on one number of ranks.
struct collective_gain {
  std::string collective{};
  int num_ranks = 0;
  std::vector<std::int64_t> sizes{};  ///< ascending
  /// Geometric means over the sizes of the time in native's, with the surest arm at each size, or
  /// native without one.
  double library_ratio = 1, railpass_ratio = 1;
  int undecided = 0;  ///< sizes
};
std::vector<collective_gain> gains_of(const bench_results& bench);

}  // namespace railpass::internal::characterise

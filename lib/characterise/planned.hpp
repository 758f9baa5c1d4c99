// SPDX-License-Identifier: BSL-1.0
//
// The plan of a characterisation. Pure.
#pragma once

#include "lib/libraries/library.hpp"
#include "railpass/knowledge/plan.hpp"

#include <span>
#include <vector>

namespace railpass::internal::characterise {

/// For each size class with measured sizes the arm of railpass with the surest gain over the
/// default, or native. Sizes between two such classes take the arm that gains at the nearest
/// measured sizes on both sides, and gains the most on the worse side; without such an arm no entry
/// covers them, and they stay native. Undecided cells do not count.
/// @param benches one for each number of ranks
std::vector<knowledge::planned_calls> plan_of(std::span<const libraries::named_bench> benches);

}  // namespace railpass::internal::characterise

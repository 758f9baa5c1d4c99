// SPDX-License-Identifier: BSL-1.0
//
// The plan of a characterisation. Pure.
#pragma once

#include "lib/libraries/library.hpp"
#include "railpass/knowledge/plan.hpp"

#include <span>
#include <vector>

namespace railpass::internal::characterise {

/// As knowledge::freeze() chooses among the arms of railpass whose gain over the default is certain
/// over the launches, at each measured size of a class of sizes. Undecided cells do not count.
/// @param benches one for each number of ranks
std::vector<knowledge::planned_calls> plan_of(std::span<const libraries::named_bench> benches);

}  // namespace railpass::internal::characterise

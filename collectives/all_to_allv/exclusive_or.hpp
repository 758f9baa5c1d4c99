// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/all_to_all/exclusive_or.hpp, with blocks of any lengths; see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_to_allv, exclusive_or)
#elif !defined(RAILPASS_COLLECTIVES_ALL_TO_ALLV_EXCLUSIVE_OR)
#define RAILPASS_COLLECTIVES_ALL_TO_ALLV_EXCLUSIVE_OR

#include "collectives/all_to_all/exclusive_or.hpp"

namespace railpass::collectives::all_to_allv {

inline constexpr algorithm exclusive_or{
    .op = collective::all_to_allv,
    .name = "exclusive_or",
    .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
    .needs = {.power_of_two = true, .max_ranks = 256},
    .build = all_to_all::build_exclusive_or,
    .cost_s = all_to_all::cost_exclusive_or};

}  // namespace railpass::collectives::all_to_allv

#endif

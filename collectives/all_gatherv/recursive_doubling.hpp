// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/all_gather/recursive_doubling.hpp, with blocks of any lengths; see
// there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gatherv, recursive_doubling)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHERV_RECURSIVE_DOUBLING)
#define RAILPASS_COLLECTIVES_ALL_GATHERV_RECURSIVE_DOUBLING

#include "collectives/all_gather/recursive_doubling.hpp"

namespace railpass::collectives::all_gatherv {

inline constexpr algorithm recursive_doubling{
    .op = collective::all_gatherv,
    .name = "recursive_doubling",
    .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
    .needs = {.power_of_two = true},
    .build = all_gather::build_recursive_doubling,
    .cost_s = all_gather::cost_recursive_doubling};

}  // namespace railpass::collectives::all_gatherv

#endif

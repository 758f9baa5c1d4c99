// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/all_to_all/pairwise.hpp, with blocks of any lengths; see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_to_allv, pairwise)
#elif !defined(RAILPASS_COLLECTIVES_ALL_TO_ALLV_PAIRWISE)
#define RAILPASS_COLLECTIVES_ALL_TO_ALLV_PAIRWISE

#include "collectives/all_to_all/pairwise.hpp"

namespace railpass::collectives::all_to_allv {

inline constexpr algorithm pairwise{.op = collective::all_to_allv,
                                    .name = "pairwise",
                                    .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
                                    .build = all_to_all::build_pairwise,
                                    .cost_s = all_to_all::cost_pairwise};

}  // namespace railpass::collectives::all_to_allv

#endif

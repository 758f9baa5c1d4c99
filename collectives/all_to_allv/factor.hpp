// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/all_to_all/factor.hpp, with blocks of any lengths; see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_to_allv, factor)
#elif !defined(RAILPASS_COLLECTIVES_ALL_TO_ALLV_FACTOR)
#define RAILPASS_COLLECTIVES_ALL_TO_ALLV_FACTOR

#include "collectives/all_to_all/factor.hpp"

namespace railpass::collectives::all_to_allv {

inline constexpr algorithm factor{
    .op = collective::all_to_allv,
    .name = "factor",
    .source = "Sanders and Traeff 2002, doi:10.1007/3-540-45706-2_112",
    .build = all_to_all::build_factor,
    .cost_s = all_to_all::cost_factor};

}  // namespace railpass::collectives::all_to_allv

#endif

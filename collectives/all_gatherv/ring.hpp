// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/all_gather/ring.hpp, with blocks of any lengths; see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gatherv, ring)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHERV_RING)
#define RAILPASS_COLLECTIVES_ALL_GATHERV_RING

#include "collectives/all_gather/ring.hpp"

namespace railpass::collectives::all_gatherv {

inline constexpr algorithm ring{.op = collective::all_gatherv,
                                .name = "ring",
                                .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
                                .build = all_gather::build_ring,
                                .cost_s = all_gather::cost_ring};

}  // namespace railpass::collectives::all_gatherv

#endif

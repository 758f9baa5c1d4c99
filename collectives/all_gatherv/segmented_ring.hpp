// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/all_gather/segmented_ring.hpp, with blocks of any lengths; see
// there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gatherv, segmented_ring)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHERV_SEGMENTED_RING)
#define RAILPASS_COLLECTIVES_ALL_GATHERV_SEGMENTED_RING

#include "collectives/all_gather/segmented_ring.hpp"

namespace railpass::collectives::all_gatherv {

inline constexpr algorithm segmented_ring{
    .op = collective::all_gatherv,
    .name = "segmented_ring",
    .source = all_gather::segmented_ring.source,
    .parameter_list = all_gather::segmented_ring.parameter_list,
    .build = all_gather::build_segmented_ring,
    .cost_s = all_gather::cost_segmented_ring};

}  // namespace railpass::collectives::all_gatherv

#endif

// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/all_gather/shared_flat.hpp, with blocks of any lengths; see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gatherv, shared_flat)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHERV_SHARED_FLAT)
#define RAILPASS_COLLECTIVES_ALL_GATHERV_SHARED_FLAT

#include "collectives/all_gather/shared_flat.hpp"

namespace railpass::collectives::all_gatherv {

inline constexpr algorithm shared_flat{.op = collective::all_gatherv,
                                       .name = "shared_flat",
                                       .source = shared_source,
                                       .needs = shared_reads_needs,
                                       .build = all_gather::build_shared_flat,
                                       .cost_s = all_gather::cost_shared_flat};

}  // namespace railpass::collectives::all_gatherv

#endif

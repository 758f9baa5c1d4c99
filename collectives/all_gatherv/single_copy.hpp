// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/all_gather/single_copy.hpp, with blocks of any lengths; see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gatherv, single_copy)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHERV_SINGLE_COPY)
#define RAILPASS_COLLECTIVES_ALL_GATHERV_SINGLE_COPY

#include "collectives/all_gather/single_copy.hpp"

namespace railpass::collectives::all_gatherv {

inline constexpr algorithm single_copy{.op = collective::all_gatherv,
                                       .name = "single_copy",
                                       .source = single_copy_source,
                                       .needs = single_copy_needs,
                                       .parameter_list = {giver_writes_parameter},
                                       .build = all_gather::build_single_copy,
                                       .cost_s = all_hand_over_s};

}  // namespace railpass::collectives::all_gatherv

#endif

// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/all_to_all/single_copy.hpp, with blocks of any lengths; see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_to_allw, single_copy)
#elif !defined(RAILPASS_COLLECTIVES_ALL_TO_ALLW_SINGLE_COPY)
#define RAILPASS_COLLECTIVES_ALL_TO_ALLW_SINGLE_COPY

#include "collectives/all_to_all/single_copy.hpp"

namespace railpass::collectives::all_to_allw {

inline constexpr algorithm single_copy{.op = collective::all_to_allw,
                                       .name = "single_copy",
                                       .source = single_copy_source,
                                       .needs = single_copy_needs,
                                       .parameter_list = {giver_writes_parameter},
                                       .build = all_to_all::build_single_copy,
                                       .cost_s = all_hand_over_s};

}  // namespace railpass::collectives::all_to_allw

#endif

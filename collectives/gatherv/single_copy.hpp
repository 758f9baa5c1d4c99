// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/gather/single_copy.hpp, with blocks of any lengths; see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(gatherv, single_copy)
#elif !defined(RAILPASS_COLLECTIVES_GATHERV_SINGLE_COPY)
#define RAILPASS_COLLECTIVES_GATHERV_SINGLE_COPY

#include "collectives/gather/single_copy.hpp"

namespace railpass::collectives::gatherv {

inline constexpr algorithm single_copy{.op = collective::gatherv,
                                       .name = "single_copy",
                                       .source = single_copy_source,
                                       .needs = single_copy_needs,
                                       .parameter_list = {giver_writes_parameter},
                                       .build = gather::build_single_copy,
                                       .cost_s = gather::cost_single_copy};

}  // namespace railpass::collectives::gatherv

#endif

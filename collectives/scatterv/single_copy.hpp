// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/scatter/single_copy.hpp, with blocks of any lengths; see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(scatterv, single_copy)
#elif !defined(RAILPASS_COLLECTIVES_SCATTERV_SINGLE_COPY)
#define RAILPASS_COLLECTIVES_SCATTERV_SINGLE_COPY

#include "collectives/scatter/single_copy.hpp"

namespace railpass::collectives::scatterv {

inline constexpr algorithm single_copy{.op = collective::scatterv,
                                       .name = "single_copy",
                                       .source = single_copy_source,
                                       .needs = single_copy_needs,
                                       .parameter_list = {giver_writes_parameter},
                                       .build = scatter::build_single_copy,
                                       .cost_s = scatter::cost_single_copy};

}  // namespace railpass::collectives::scatterv

#endif

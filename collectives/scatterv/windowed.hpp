// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/scatter/windowed.hpp, with blocks of any lengths; see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(scatterv, windowed)
#elif !defined(RAILPASS_COLLECTIVES_SCATTERV_WINDOWED)
#define RAILPASS_COLLECTIVES_SCATTERV_WINDOWED

#include "collectives/scatter/windowed.hpp"

namespace railpass::collectives::scatterv {

inline constexpr algorithm windowed{.op = collective::scatterv,
                                    .name = "windowed",
                                    .source = "Chan et al. 2007, doi:10.1002/cpe.1206",
                                    .parameter_list = {parameter{"requests", {4, 1, 2, 8, 16}}},
                                    .build = scatter::build_windowed,
                                    .cost_s = scatter::cost_windowed};

}  // namespace railpass::collectives::scatterv

#endif

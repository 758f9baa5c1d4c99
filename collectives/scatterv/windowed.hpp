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
                                    .source =
                                        "MPI 4.0, section 6.6, as the call is defined; Thakur et "
                                        "al. 2005, doi:10.1177/1094342005051521",
                                    .parameter_list = {parameter{"requests", {4, 1, 2, 8, 16}}},
                                    .build = scatter::build_windowed,
                                    .cost_s = scatter::cost_windowed};

}  // namespace railpass::collectives::scatterv

#endif

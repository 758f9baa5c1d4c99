// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/gather/windowed.hpp, with blocks of any lengths; see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(gatherv, windowed)
#elif !defined(RAILPASS_COLLECTIVES_GATHERV_WINDOWED)
#define RAILPASS_COLLECTIVES_GATHERV_WINDOWED

#include "collectives/gather/windowed.hpp"

namespace railpass::collectives::gatherv {

inline constexpr algorithm windowed{.op = collective::gatherv,
                                    .name = "windowed",
                                    .source =
                                        "MPI 4.0, section 6.5, as the call is defined; Thakur et "
                                        "al. 2005, doi:10.1177/1094342005051521",
                                    .parameter_list = {parameter{"requests", {4, 1, 2, 8, 16}}},
                                    .build = gather::build_windowed,
                                    .cost_s = gather::cost_windowed};

}  // namespace railpass::collectives::gatherv

#endif

// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/all_to_all/scattered.hpp, with blocks of any lengths; see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_to_allw, scattered)
#elif !defined(RAILPASS_COLLECTIVES_ALL_TO_ALLW_SCATTERED)
#define RAILPASS_COLLECTIVES_ALL_TO_ALLW_SCATTERED

#include "collectives/all_to_all/scattered.hpp"

namespace railpass::collectives::all_to_allw {

inline constexpr algorithm scattered{.op = collective::all_to_allw,
                                     .name = "scattered",
                                     .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
                                     .parameter_list = {parameter{"requests", {64, 4, 8, 16, 32}}},
                                     .build = all_to_all::build_scattered,
                                     .cost_s = all_to_all::cost_scattered};

}  // namespace railpass::collectives::all_to_allw

#endif

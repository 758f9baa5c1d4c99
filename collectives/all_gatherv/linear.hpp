// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/all_gather/linear.hpp, with blocks of any lengths; see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gatherv, linear)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHERV_LINEAR)
#define RAILPASS_COLLECTIVES_ALL_GATHERV_LINEAR

#include "collectives/all_gather/linear.hpp"

namespace railpass::collectives::all_gatherv {

inline constexpr algorithm linear{.op = collective::all_gatherv,
                                  .name = "linear",
                                  .source = "MPI 4.0, section 6.7, as the call is defined",
                                  .build = all_gather::build_linear,
                                  .cost_s = all_gather::cost_linear};

}  // namespace railpass::collectives::all_gatherv

#endif

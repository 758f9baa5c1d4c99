// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/gather/linear.hpp, with blocks of any lengths; see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(gatherv, linear)
#elif !defined(RAILPASS_COLLECTIVES_GATHERV_LINEAR)
#define RAILPASS_COLLECTIVES_GATHERV_LINEAR

#include "collectives/gather/linear.hpp"

namespace railpass::collectives::gatherv {

inline constexpr algorithm linear{.op = collective::gatherv,
                                  .name = "linear",
                                  .source = "MPI 4.0, section 6.5, as the call is defined",
                                  .build = gather::build_linear,
                                  .cost_s = gather::cost_linear};

}  // namespace railpass::collectives::gatherv

#endif

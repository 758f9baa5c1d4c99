// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/scatter/linear.hpp, with blocks of any lengths; see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(scatterv, linear)
#elif !defined(RAILPASS_COLLECTIVES_SCATTERV_LINEAR)
#define RAILPASS_COLLECTIVES_SCATTERV_LINEAR

#include "collectives/scatter/linear.hpp"

namespace railpass::collectives::scatterv {

inline constexpr algorithm linear{.op = collective::scatterv,
                                  .name = "linear",
                                  .source = "MPI 4.0, section 6.6, as the call is defined",
                                  .build = scatter::build_linear,
                                  .cost_s = scatter::cost_linear};

}  // namespace railpass::collectives::scatterv

#endif

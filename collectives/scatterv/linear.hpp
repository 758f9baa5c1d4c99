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
                                  .source = "Chan et al. 2007, doi:10.1002/cpe.1206",
                                  .build = scatter::build_linear,
                                  .cost_s = scatter::cost_linear};

}  // namespace railpass::collectives::scatterv

#endif

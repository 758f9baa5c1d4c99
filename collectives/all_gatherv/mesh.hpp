// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/all_gather/mesh.hpp, with blocks of any lengths; see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gatherv, mesh)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHERV_MESH)
#define RAILPASS_COLLECTIVES_ALL_GATHERV_MESH

#include "collectives/all_gather/mesh.hpp"

namespace railpass::collectives::all_gatherv {

inline constexpr algorithm mesh{.op = collective::all_gatherv,
                                .name = "mesh",
                                .source = "Barnett et al. 1994, doi:10.1109/SHPCC.1994.296665",
                                .build = all_gather::build_mesh,
                                .cost_s = all_gather::cost_mesh};

}  // namespace railpass::collectives::all_gatherv

#endif

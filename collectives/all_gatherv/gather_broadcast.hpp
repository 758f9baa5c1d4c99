// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/all_gather/gather_broadcast.hpp, with blocks of any lengths; see
// there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gatherv, gather_broadcast)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHERV_GATHER_BROADCAST)
#define RAILPASS_COLLECTIVES_ALL_GATHERV_GATHER_BROADCAST

#include "collectives/all_gather/gather_broadcast.hpp"

namespace railpass::collectives::all_gatherv {

inline constexpr algorithm gather_broadcast{
    .op = collective::all_gatherv,
    .name = "gather_broadcast",
    .source = "Traeff et al. 2010, doi:10.1109/TPDS.2009.120",
    .parameter_list = {segment_bytes_parameter},
    .build = all_gather::build_gather_broadcast,
    .cost_s = all_gather::cost_gather_broadcast};

}  // namespace railpass::collectives::all_gatherv

#endif

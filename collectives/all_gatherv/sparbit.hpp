// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/all_gather/sparbit.hpp, with blocks of any lengths; see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gatherv, sparbit)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHERV_SPARBIT)
#define RAILPASS_COLLECTIVES_ALL_GATHERV_SPARBIT

#include "collectives/all_gather/sparbit.hpp"

namespace railpass::collectives::all_gatherv {

inline constexpr algorithm sparbit{
    .op = collective::all_gatherv,
    .name = "sparbit",
    .source = "Loch and Koslovski 2023, doi:10.1007/s10723-023-09650-5",
    .build = all_gather::build_sparbit,
    .cost_s = all_gather::cost_sparbit};

}  // namespace railpass::collectives::all_gatherv

#endif

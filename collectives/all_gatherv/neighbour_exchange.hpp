// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/all_gather/neighbour_exchange.hpp, with blocks of any lengths; see
// there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gatherv, neighbour_exchange)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHERV_NEIGHBOUR_EXCHANGE)
#define RAILPASS_COLLECTIVES_ALL_GATHERV_NEIGHBOUR_EXCHANGE

#include "collectives/all_gather/neighbour_exchange.hpp"

namespace railpass::collectives::all_gatherv {

inline constexpr algorithm neighbour_exchange{
    .op = collective::all_gatherv,
    .name = "neighbour_exchange",
    .source = "Chen et al. 2005, doi:10.1109/HPCASIA.2005.75",
    .needs = {.even_ranks = true},
    .build = all_gather::build_neighbour_exchange,
    .cost_s = all_gather::cost_neighbour_exchange};

}  // namespace railpass::collectives::all_gatherv

#endif

// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/reduce_scatter_block/recursive_doubling.hpp, with blocks of any
// lengths; see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce_scatter, recursive_doubling)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SCATTER_RECURSIVE_DOUBLING)
#define RAILPASS_COLLECTIVES_REDUCE_SCATTER_RECURSIVE_DOUBLING

#include "collectives/reduce_scatter_block/recursive_doubling.hpp"

namespace railpass::collectives::reduce_scatter {

inline constexpr algorithm recursive_doubling{
    .op = collective::reduce_scatter,
    .name = "recursive_doubling",
    .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
    .scratch = {.messages = 2},
    .build = reduce_scatter_block::build_recursive_doubling,
    .cost_s = reduce_scatter_block::cost_recursive_doubling};

}  // namespace railpass::collectives::reduce_scatter

#endif

// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/reduce_scatter_block/recursive_halving.hpp, with blocks of any
// lengths; see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce_scatter, recursive_halving)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SCATTER_RECURSIVE_HALVING)
#define RAILPASS_COLLECTIVES_REDUCE_SCATTER_RECURSIVE_HALVING

#include "collectives/reduce_scatter_block/recursive_halving.hpp"

namespace railpass::collectives::reduce_scatter {

inline constexpr algorithm recursive_halving{
    .op = collective::reduce_scatter,
    .name = "recursive_halving",
    .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
    .needs = {.commutative = true},
    .scratch = {.messages = 2},
    .build = reduce_scatter_block::build_recursive_halving,
    .cost_s = reduce_scatter_block::cost_recursive_halving};

}  // namespace railpass::collectives::reduce_scatter

#endif

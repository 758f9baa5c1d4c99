// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/reduce_scatter_block/pairwise.hpp, with blocks of any lengths; see
// there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce_scatter, pairwise)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SCATTER_PAIRWISE)
#define RAILPASS_COLLECTIVES_REDUCE_SCATTER_PAIRWISE

#include "collectives/reduce_scatter_block/pairwise.hpp"

namespace railpass::collectives::reduce_scatter {

inline constexpr algorithm pairwise{.op = collective::reduce_scatter,
                                    .name = "pairwise",
                                    .source = "Thakur et al. 2005, doi:10.1177/1094342005051521",
                                    .needs = {.max_ranks = 256},
                                    .scratch = {.blocks = 3},
                                    .build = reduce_scatter_block::build_pairwise,
                                    .cost_s = reduce_scatter_block::cost_pairwise};

}  // namespace railpass::collectives::reduce_scatter

#endif

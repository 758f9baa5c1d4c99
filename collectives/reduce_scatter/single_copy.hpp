// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/reduce_scatter_block/single_copy.hpp, with blocks of any lengths;
// see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce_scatter, single_copy)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SCATTER_SINGLE_COPY)
#define RAILPASS_COLLECTIVES_REDUCE_SCATTER_SINGLE_COPY

#include "collectives/reduce_scatter_block/single_copy.hpp"

namespace railpass::collectives::reduce_scatter {

inline constexpr algorithm single_copy{.op = collective::reduce_scatter,
                                       .name = "single_copy",
                                       .source = single_copy_source,
                                       .needs = single_copy_needs,
                                       .scratch = {.blocks = 1},
                                       .build = reduce_scatter_block::build_single_copy,
                                       .cost_s = reduce_scatter_block::cost_single_copy};

}  // namespace railpass::collectives::reduce_scatter

#endif

// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/reduce_scatter_block/shared_flat.hpp, with blocks of any lengths;
// see there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce_scatter, shared_flat)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SCATTER_SHARED_FLAT)
#define RAILPASS_COLLECTIVES_REDUCE_SCATTER_SHARED_FLAT

#include "collectives/reduce_scatter_block/shared_flat.hpp"

namespace railpass::collectives::reduce_scatter {

inline constexpr algorithm shared_flat{.op = collective::reduce_scatter,
                                       .name = "shared_flat",
                                       .source = shared_source,
                                       .needs = shared_blocks_needs,
                                       .build = reduce_scatter_block::build_shared_flat,
                                       .cost_s = reduce_scatter_block::cost_shared_flat};

}  // namespace railpass::collectives::reduce_scatter

#endif

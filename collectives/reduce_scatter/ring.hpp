// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/reduce_scatter_block/ring.hpp, with blocks of any lengths; see
// there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce_scatter, ring)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SCATTER_RING)
#define RAILPASS_COLLECTIVES_REDUCE_SCATTER_RING

#include "collectives/reduce_scatter_block/ring.hpp"

namespace railpass::collectives::reduce_scatter {

inline constexpr algorithm ring{.op = collective::reduce_scatter,
                                .name = "ring",
                                .source = "Patarasuk and Yuan 2009, doi:10.1016/j.jpdc.2008.09.002",
                                .needs = {.commutative = true},
                                .scratch = {.messages = 1},
                                .build = reduce_scatter_block::build_ring,
                                .cost_s = reduce_scatter_block::cost_ring};

}  // namespace railpass::collectives::reduce_scatter

#endif

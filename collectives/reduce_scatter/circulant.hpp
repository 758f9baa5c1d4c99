// SPDX-License-Identifier: BSL-1.0
//
// The schedules of collectives/reduce_scatter_block/circulant.hpp, with blocks of any lengths; see
// there.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce_scatter, circulant)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SCATTER_CIRCULANT)
#define RAILPASS_COLLECTIVES_REDUCE_SCATTER_CIRCULANT

#include "collectives/reduce_scatter_block/circulant.hpp"

namespace railpass::collectives::reduce_scatter {

inline constexpr algorithm circulant{.op = collective::reduce_scatter,
                                     .name = "circulant",
                                     .source = "Traeff 2024, doi:10.48550/arXiv.2410.14234",
                                     .needs = {.commutative = true},
                                     .scratch = {.messages = 2},
                                     .build = reduce_scatter_block::build_circulant,
                                     .cost_s = reduce_scatter_block::cost_circulant};

}  // namespace railpass::collectives::reduce_scatter

#endif

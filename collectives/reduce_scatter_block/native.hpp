// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce_scatter_block, native)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_SCATTER_BLOCK_NATIVE)
#define RAILPASS_COLLECTIVES_REDUCE_SCATTER_BLOCK_NATIVE

#include "collectives/algorithm.hpp"

namespace railpass::collectives::reduce_scatter_block {

/// The MPI library's own reduce_scatter_block: always there, opaque, the incumbent until another
/// arm beats it.
inline constexpr algorithm native{.op = collective::reduce_scatter_block,
                                  .name = "native",
                                  .source = "the MPI library",
                                  .needs = {.min_ranks = 1}};

}  // namespace railpass::collectives::reduce_scatter_block

#endif

// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(reduce, native)
#elif !defined(RAILPASS_COLLECTIVES_REDUCE_NATIVE)
#define RAILPASS_COLLECTIVES_REDUCE_NATIVE

#include "collectives/algorithm.hpp"

namespace railpass::collectives::reduce {

/// The MPI library's own reduce: always there, opaque, the incumbent until another arm beats it.
inline constexpr algorithm native{.op = collective::reduce,
                                  .name = "native",
                                  .source = "the MPI library",
                                  .needs = {.min_ranks = 1}};

}  // namespace railpass::collectives::reduce

#endif

// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gather, native)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHER_NATIVE)
#define RAILPASS_COLLECTIVES_ALL_GATHER_NATIVE

#include "collectives/algorithm.hpp"

namespace railpass::collectives::all_gather {

/// The MPI library's own all_gather: always there, opaque, the incumbent until another arm beats
/// it.
inline constexpr algorithm native{.op = collective::all_gather,
                                  .name = "native",
                                  .source = "the MPI library",
                                  .needs = {.min_ranks = 1}};

}  // namespace railpass::collectives::all_gather

#endif

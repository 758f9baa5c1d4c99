// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(broadcast, native)
#elif !defined(RAILPASS_COLLECTIVES_BROADCAST_NATIVE)
#define RAILPASS_COLLECTIVES_BROADCAST_NATIVE

#include "collectives/algorithm.hpp"

namespace railpass::collectives::broadcast {

/// The MPI library's own broadcast: always there, opaque, the incumbent until another arm beats it.
inline constexpr algorithm native{.op = collective::broadcast,
                                  .name = "native",
                                  .source = "the MPI library",
                                  .needs = {.min_ranks = 1}};

}  // namespace railpass::collectives::broadcast

#endif

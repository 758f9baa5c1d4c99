// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(barrier, native)
#elif !defined(RAILPASS_COLLECTIVES_BARRIER_NATIVE)
#define RAILPASS_COLLECTIVES_BARRIER_NATIVE

#include "collectives/algorithm.hpp"

namespace railpass::collectives::barrier {

/// The MPI library's own barrier: always there, opaque, the incumbent until another arm beats it.
inline constexpr algorithm native{.op = collective::barrier,
                                  .name = "native",
                                  .source = "the MPI library",
                                  .needs = {.min_ranks = 1}};

}  // namespace railpass::collectives::barrier

#endif

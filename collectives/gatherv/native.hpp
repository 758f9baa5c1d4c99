// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(gatherv, native)
#elif !defined(RAILPASS_COLLECTIVES_GATHERV_NATIVE)
#define RAILPASS_COLLECTIVES_GATHERV_NATIVE

#include "collectives/algorithm.hpp"

namespace railpass::collectives::gatherv {

/// The MPI library's own gatherv: always there, opaque, the incumbent until another arm beats it.
inline constexpr algorithm native{.op = collective::gatherv,
                                  .name = "native",
                                  .source = "the MPI library",
                                  .needs = {.min_ranks = 1}};

}  // namespace railpass::collectives::gatherv

#endif

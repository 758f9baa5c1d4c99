// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(exscan, native)
#elif !defined(RAILPASS_COLLECTIVES_EXSCAN_NATIVE)
#define RAILPASS_COLLECTIVES_EXSCAN_NATIVE

#include "collectives/algorithm.hpp"

namespace railpass::collectives::exscan {

/// The MPI library's own exscan: always there, opaque, the incumbent until another arm beats it.
inline constexpr algorithm native{.op = collective::exscan,
                                  .name = "native",
                                  .source = "the MPI library",
                                  .needs = {.min_ranks = 1}};

}  // namespace railpass::collectives::exscan

#endif

// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(gather, native)
#elif !defined(RAILPASS_COLLECTIVES_GATHER_NATIVE)
#define RAILPASS_COLLECTIVES_GATHER_NATIVE

#include "collectives/algorithm.hpp"

namespace railpass::collectives::gather {

/// The MPI library's own gather: always there, opaque, the incumbent until another arm beats it.
inline constexpr algorithm native{.op = collective::gather,
                                  .name = "native",
                                  .source = "the MPI library",
                                  .needs = {.min_ranks = 1}};

}  // namespace railpass::collectives::gather

#endif

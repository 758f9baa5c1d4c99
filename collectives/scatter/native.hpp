// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(scatter, native)
#elif !defined(RAILPASS_COLLECTIVES_SCATTER_NATIVE)
#define RAILPASS_COLLECTIVES_SCATTER_NATIVE

#include "collectives/algorithm.hpp"

namespace railpass::collectives::scatter {

/// The MPI library's own scatter: always there, opaque, the incumbent until another arm beats it.
inline constexpr algorithm native{.op = collective::scatter,
                                  .name = "native",
                                  .source = "the MPI library",
                                  .needs = {.min_ranks = 1}};

}  // namespace railpass::collectives::scatter

#endif

// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(scatterv, native)
#elif !defined(RAILPASS_COLLECTIVES_SCATTERV_NATIVE)
#define RAILPASS_COLLECTIVES_SCATTERV_NATIVE

#include "collectives/algorithm.hpp"

namespace railpass::collectives::scatterv {

/// The MPI library's own scatterv: always there, opaque, the incumbent until another arm beats it.
inline constexpr algorithm native{.op = collective::scatterv,
                                  .name = "native",
                                  .source = "the MPI library",
                                  .needs = {.min_ranks = 1}};

}  // namespace railpass::collectives::scatterv

#endif

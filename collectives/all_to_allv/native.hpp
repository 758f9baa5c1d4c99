// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_to_allv, native)
#elif !defined(RAILPASS_COLLECTIVES_ALL_TO_ALLV_NATIVE)
#define RAILPASS_COLLECTIVES_ALL_TO_ALLV_NATIVE

#include "collectives/algorithm.hpp"

namespace railpass::collectives::all_to_allv {

/// The MPI library's own all_to_allv: always there, opaque, the incumbent until another arm beats
/// it.
inline constexpr algorithm native{.op = collective::all_to_allv,
                                  .name = "native",
                                  .source = "the MPI library",
                                  .needs = {.min_ranks = 1}};

}  // namespace railpass::collectives::all_to_allv

#endif

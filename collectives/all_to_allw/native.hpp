// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_to_allw, native)
#elif !defined(RAILPASS_COLLECTIVES_ALL_TO_ALLW_NATIVE)
#define RAILPASS_COLLECTIVES_ALL_TO_ALLW_NATIVE

#include "collectives/algorithm.hpp"

namespace railpass::collectives::all_to_allw {

/// The MPI library's own all_to_allw: always there, opaque, the incumbent until another arm beats
/// it.
inline constexpr algorithm native{.op = collective::all_to_allw,
                                  .name = "native",
                                  .source = "the MPI library",
                                  .needs = {.min_ranks = 1}};

}  // namespace railpass::collectives::all_to_allw

#endif

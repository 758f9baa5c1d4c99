// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_to_all, native)
#elif !defined(RAILPASS_COLLECTIVES_ALL_TO_ALL_NATIVE)
#define RAILPASS_COLLECTIVES_ALL_TO_ALL_NATIVE

#include "collectives/algorithm.hpp"

namespace railpass::collectives::all_to_all {

/// The MPI library's own all_to_all: always there, opaque, the incumbent until another arm beats
/// it.
inline constexpr algorithm native{.op = collective::all_to_all,
                                  .name = "native",
                                  .source = "the MPI library",
                                  .needs = {.min_ranks = 1}};

}  // namespace railpass::collectives::all_to_all

#endif

// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(scan, native)
#elif !defined(RAILPASS_COLLECTIVES_SCAN_NATIVE)
#define RAILPASS_COLLECTIVES_SCAN_NATIVE

#include "collectives/algorithm.hpp"

namespace railpass::collectives::scan {

/// The MPI library's own scan: always there, opaque, the incumbent until another arm beats it.
inline constexpr algorithm native{.op = collective::scan,
                                  .name = "native",
                                  .source = "the MPI library",
                                  .needs = {.min_ranks = 1}};

}  // namespace railpass::collectives::scan

#endif

// SPDX-License-Identifier: BSL-1.0
//
// Includes all algorithms. The registry of the algorithms is in registry.hpp.
#pragma once

#include "collectives/algorithm.hpp"

#define RAILPASS_NATIVE(op)                                             \
  namespace railpass::collectives::op {                                 \
  inline constexpr algorithm native = native_algorithm(collective::op); \
  }
#define RAILPASS_SAME(op, other, name)                                    \
  namespace railpass::collectives::op {                                   \
  inline constexpr algorithm name = serving(collective::op, other::name); \
  }
#define RAILPASS_PADDED(op, other, name)                                 \
  namespace railpass::collectives::op {                                  \
  inline constexpr algorithm name = padded<other::name>(collective::op); \
  }
#include "collectives/algorithms.def"
#undef RAILPASS_NATIVE
#undef RAILPASS_SAME
#undef RAILPASS_PADDED

namespace railpass {

#define RAILPASS_LIST_ALGORITHM(op, name) &collectives::op::name,
#define RAILPASS_NATIVE(op) RAILPASS_LIST_ALGORITHM(op, native)
#define RAILPASS_SAME(op, other, name) RAILPASS_LIST_ALGORITHM(op, name)
#define RAILPASS_PADDED(op, other, name) RAILPASS_LIST_ALGORITHM(op, name)
inline constexpr const algorithm* listed_algorithms[] = {
#include "collectives/algorithms.def"
};
#undef RAILPASS_LIST_ALGORITHM
#undef RAILPASS_NATIVE
#undef RAILPASS_SAME
#undef RAILPASS_PADDED

}  // namespace railpass

// SPDX-License-Identifier: BSL-1.0
//
// The algorithms themselves, all of them. What they are needed for is in registry.hpp.
#pragma once

#include "collectives/algorithm.hpp"
#include "collectives/algorithms.def"

namespace railpass {

#define RAILPASS_LIST_ALGORITHM(op, name) &collectives::op::name,
inline constexpr const algorithm* listed_algorithms[] = {
#include "collectives/algorithms.def"
};
#undef RAILPASS_LIST_ALGORITHM

}  // namespace railpass

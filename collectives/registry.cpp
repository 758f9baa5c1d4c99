// SPDX-License-Identifier: BSL-1.0
#include "collectives/registry.hpp"

#include "collectives/all_algorithms.hpp"

namespace railpass {

constinit const std::span<const algorithm* const> all_algorithms = listed_algorithms;

}  // namespace railpass

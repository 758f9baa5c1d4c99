// SPDX-License-Identifier: BSL-1.0
//
// The executor over the transport's rails, compiled once.
#pragma once

#include "lib/exec/executor.hpp"
#include "lib/rails/transport_rail.hpp"

namespace railpass::internal {

extern template class executor<transport_rail>;

}  // namespace railpass::internal

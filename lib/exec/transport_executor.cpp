// SPDX-License-Identifier: BSL-1.0
#include "lib/exec/transport_executor.hpp"

namespace railpass::internal {

template class executor<transport_rail>;

}  // namespace railpass::internal

// SPDX-License-Identifier: BSL-1.0
#include "lib/exec/transport_executor.hpp"

namespace railpass {

template class executor<transport_rail>;

}  // namespace railpass

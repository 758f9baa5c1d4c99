// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/base/settings.hpp"

namespace railpass::cli {

/// The settings of this process's environment, as a program's ranks will read them. Beyond what
/// read_environment finds, `problems` tells of values that have the right kind but name nothing:
/// policies, collectives, arms and a profile that cannot be read.
environment_settings read_settings();

}  // namespace railpass::cli

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/runtime/settings_in_force.hpp"
#include "lib/store/store.hpp"

namespace railpass::internal::cli {

/// The settings of this process, as a program's ranks will read them. `problems` also has unknown
/// policies, collectives and arms, and a profile that cannot be read.
settings_in_force checked_settings();

/// For verbs that measure the effect of railpass. Throws usage_error if the environment or the
/// site's file switches railpass off.
void require_railpass_on();

/// The locations of knowledge by RAILPASS_KNOWLEDGE. RAILPASS_KNOWLEDGE=off is for programs: verbs
/// then read the usual locations. Throws error.
store::locations knowledge_locations();

}  // namespace railpass::internal::cli

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>

namespace life {

/// Whether this rank comes late to agreements of a preloaded library now and then, so that its
/// other threads go on meanwhile.
extern std::atomic<bool> delays_agreements;

}  // namespace life

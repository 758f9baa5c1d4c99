// SPDX-License-Identifier: BSL-1.0
//
// Which clock a process measures by. Two processes with equal marks read the same clock, so that
// times of both can be compared.
#pragma once

#include <cstdint>

namespace railpass {

/// A number for the steady clock of this process: of the boot of its kernel and of its time
/// namespace. 0: unknown. Allocates nothing.
std::uint64_t mark_of_clock();

}  // namespace railpass

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/buffers/call_buffers.hpp"

#include <functional>

namespace railpass::internal {

class process;

/// RAILPASS_VERIFY: runs the call by `tuned`, then the MPI library's own collective, and compares.
/// A difference beyond rounding is recorded; the user gets the MPI library's result. Collective;
/// returns an MPI error code.
int run_verified(const call& c, const calling_rank& at, process& owner,
                 const std::function<int(const call&)>& tuned);

}  // namespace railpass::internal

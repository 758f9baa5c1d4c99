// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/buffers/call_buffers.hpp"

#include <cstdint>
#include <functional>
#include <span>

namespace railpass::internal {

class process;

/// RAILPASS_VERIFY: runs the call by `tuned`, then the MPI library's own collective, and compares.
/// A difference beyond rounding is recorded; the user gets the MPI library's result. Without memory
/// for copies on one rank, the call is not compared on any rank. Collective; returns an MPI error
/// code.
/// @param find_largest replaces words by the largest ones of all ranks; collective
int run_verified(const call& c, const calling_rank& at, process& owner,
                 const std::function<int(const call&)>& tuned,
                 const std::function<int(std::span<std::uint64_t>)>& find_largest);

}  // namespace railpass::internal

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/buffers/call_buffers.hpp"

#include <cstddef>
#include <functional>
#include <vector>

namespace railpass::internal {

class process;

/// RAILPASS_VERIFY: runs the call by `tuned`, then the MPI library's own collective, and compares.
/// A difference beyond rounding is recorded; the user gets the MPI library's result. Collective;
/// returns an MPI error code.
int run_verified(const call& c, const calling_rank& at, process& owner,
                 const std::function<int(const call&)>& tuned);

/// Whether two packed copies of the blocks hold the same values. Bytes that belong to no value, as
/// those that fill up a long double, do not count. Local; returns an MPI error code.
int compare_values(const std::vector<user_block>& blocks, const std::vector<std::byte>& a,
                   const std::vector<std::byte>& b, bool& same);

}  // namespace railpass::internal

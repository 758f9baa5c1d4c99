// SPDX-License-Identifier: BSL-1.0
//
// Messages between ranks: latency, overheads, rates, by size.
#pragma once

#include "lib/measure/job.hpp"
#include "models/samples.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace railpass::internal::measure {

/// The sizes that are sampled: of messages, and of copies and reductions beside them.
inline constexpr std::array<std::int64_t, 18> sampled_bytes{
    1,        8,        64,       256,       512,       1 << 10,   2 << 10, 4 << 10, 8 << 10,
    16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20};

/// Measures messages within a node and across nodes for about `budget_s` seconds. Messages go over
/// `rails`; empty: MPI's messages. Collective; the result is on rank 0, and empty elsewhere. Throws
/// error (on all ranks) if the budget is too small for the smallest messages, or if the rails do
/// not exist.
measurements sample_links(const job& j, const std::string& rails, double budget_s,
                          const progress_report& progress);

}  // namespace railpass::internal::measure

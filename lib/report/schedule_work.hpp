// SPDX-License-Identifier: BSL-1.0
//
// The work of each rank in a simulated schedule: sending, receiving, computing.
#pragma once

#include "collectives/registry.hpp"
#include "lib/report/table.hpp"
#include "models/trace.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace railpass::internal::report {

/// The approximate number of messages of a call, of all ranks together: the cost of a simulation.
double messages_of(const arm& a, int num_ranks, std::int64_t bytes);

/// The work of one rank, in seconds. Events of the same kind that overlap count once.
struct rank_work {
  double sending_s = 0, receiving_s = 0, computing_s = 0;
  std::int64_t sent_bytes = 0, received_bytes = 0;
};

/// The work of each rank, by rank. The simulation needs simulation_setup::record.
std::vector<rank_work> work_of(const simulation& run);

/// The rank that spends the most time on one kind of work.
struct bottleneck {
  std::size_t rank = 0;
  const char* doing = "sending";
  double busy_s = 0;
  std::int64_t bytes = 0;
};

bottleneck find_bottleneck(std::span<const rank_work> work);

/// A row for each rank. With more than 32 ranks, unless `in_full`: the least, the median and the
/// most of each column, and the ranks in `named`.
table work_table(std::span<const rank_work> work, const simulation& run,
                 const std::map<std::size_t, std::string>& named, bool in_full);

}  // namespace railpass::internal::report

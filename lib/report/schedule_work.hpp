// SPDX-License-Identifier: BSL-1.0
//
// What the ranks of a schedule do, and for how long.
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

/// About how many messages the arm takes on all ranks together: the cost of a simulation.
double messages_of(const arm& a, int num_ranks, std::int64_t bytes);

/// Of one rank; events of one kind that overlap are counted once.
struct rank_work {
  double sending_s = 0, receiving_s = 0, computing_s = 0;
  std::int64_t sent_bytes = 0, received_bytes = 0;
};

/// By rank. Needs simulation_setup::record.
std::vector<rank_work> work_of(const simulation& run);

/// Who does one kind of work for the longest time.
struct bottleneck {
  std::size_t rank = 0;
  const char* doing = "sending";
  double busy_s = 0;
  std::int64_t bytes = 0;
};

bottleneck find_bottleneck(std::span<const rank_work> work);

/// Every rank; unless `in_full`, of more than 32 ranks the least, the median and the most of each
/// column, and whoever is named.
table work_table(std::span<const rank_work> work, const simulation& run,
                 const std::map<std::size_t, std::string>& named, bool in_full);

}  // namespace railpass::internal::report

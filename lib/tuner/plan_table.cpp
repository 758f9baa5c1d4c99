// SPDX-License-Identifier: BSL-1.0
#include "lib/tuner/plan_table.hpp"

#include <algorithm>

namespace railpass::internal {

// The reader of plans has checked all names.
plan_table::plan_table(const knowledge::plan& p, int num_ranks, std::string_view rails) {
  for (const knowledge::planned_calls& c : p.calls) {
    if (c.num_ranks != num_ranks || (!c.rails.empty() && c.rails != rails)) continue;
    const collective op = *find_collective(c.collective);
    const auto operation = std::ranges::find(select::operation_class_names, c.operation);
    entry e{.ranks_per_node = c.ranks_per_node,
            .over_rails = !c.rails.empty(),
            .operation = select::operation_class(operation - select::operation_class_names.begin()),
            .from_bytes = c.from_bytes,
            .chosen = parse_arm(op, c.variant)};
    if (c.to_bytes) e.to_bytes = *c.to_bytes;
    if (!e.chosen.base->is_native()) entries_[std::size_t(op)].push_back(e);
  }
}

bool plan_table::has_any(const knowledge::plan& p, int num_ranks) {
  return std::ranges::any_of(p.calls, [&](const knowledge::planned_calls& c) {
    return c.num_ranks == num_ranks && c.variant != "native";
  });
}

void plan_table::keep(int ranks_per_node, bool over_rails) {
  for (std::vector<entry>& of_collective : entries_)
    std::erase_if(of_collective, [&](const entry& e) {
      return e.ranks_per_node != ranks_per_node || e.over_rails != over_rails;
    });
}

}  // namespace railpass::internal
